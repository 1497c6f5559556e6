// Filters of the execution list, and how the URL encodes them.

import {
  CANCELLABLE,
  type ExecutionAct,
  type ExecutionFilter,
  RETRYABLE,
  TRIGGERED_BY,
} from "@/api/execution-list";
import { type Execution, STATUSES, type Status } from "@/api/types";
import { anyOf, type Field, oneOf, text, texts, type Values } from "@/routing/search";

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** List of UUIDs. Invalid ones are ignored. */
function ids(): Field<readonly string[]> {
  const all = texts();
  return { read: (given) => all.read(given).filter((each) => ID.test(each)), write: all.write };
}

/** Instant in ISO 8601, UTC. Empty: none, or invalid. */
function instant(): Field<string> {
  return {
    read: ([given = ""]) => (Number.isNaN(Date.parse(given)) ? "" : new Date(given).toISOString()),
    write: (value) => (value === "" ? [] : [value]),
  };
}

export const shape = {
  status: anyOf(STATUSES),
  queue: texts(),
  triggered_by: anyOf(TRIGGERED_BY),
  schedule_id: ids(),
  fire_from: instant(),
  fire_to: instant(),
  live: oneOf(["on", "off"] as const, "on"),
  /** Id of the execution whose panel is open. */
  open: text(),
};

export type Search = Values<typeof shape>;

/** The filter that is sent to the API, without parameters of the view. */
export function filterOf({ live: _live, open: _open, ...which }: Search): ExecutionFilter {
  const given = Object.entries(which).filter(([, value]) => value.length > 0);
  return Object.fromEntries(given) as ExecutionFilter;
}

export function isFiltered(search: Search): boolean {
  return Object.keys(filterOf(search)).length > 0;
}

export const UNFILTERED: Partial<Search> = {
  status: [],
  queue: [],
  triggered_by: [],
  schedule_id: [],
  fire_from: "",
  fire_to: "",
};

const ACTS_ON: Record<ExecutionAct, readonly Status[]> = { retry: RETRYABLE, cancel: CANCELLABLE };

export function canBe(act: ExecutionAct, status: Status): boolean {
  return ACTS_ON[act].includes(status);
}

/** Restrict a filter to statuses that allow the action. Null: nothing can match. */
export function narrowed(act: ExecutionAct, filter: ExecutionFilter): ExecutionFilter | null {
  const wanted = filter.status ?? [];
  const status = ACTS_ON[act].filter((each) => wanted.length === 0 || wanted.includes(each));
  return status.length === 0 ? null : { ...filter, status: [...status] };
}

// --- lists that grow at their head -------------------------------------------------------------------------

/** Whether `a` is listed after `b`: by fire time, or by creation time. Ids sort by creation time. */
export function isBehind(a: Execution, b: Execution, isByFireTime: boolean): boolean {
  if (isByFireTime && a.fire_ts !== b.fire_ts) {
    return Date.parse(a.fire_ts) < Date.parse(b.fire_ts);
  }
  return a.execution_id < b.execution_id;
}

/** The latest pages, followed by known rows that new rows pushed off the last page. These still exist. */
export function withTail(
  fresh: readonly Execution[],
  known: readonly Execution[],
  isByFireTime: boolean,
): readonly Execution[] {
  const last = fresh.at(-1);
  if (last === undefined) {
    return known;
  }
  const tail = known.filter((row) => isBehind(row, last, isByFireTime));
  return tail.length === 0 ? fresh : [...fresh, ...tail];
}
