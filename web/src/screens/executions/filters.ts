// Which executions the reader wants to see: the shape of the address.

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

/** Ids; what is none counts as not given. */
function ids(): Field<readonly string[]> {
  const all = texts();
  return { read: (given) => all.read(given).filter((each) => ID.test(each)), write: all.write };
}

/** An instant as the API writes it, or empty. */
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
  /** The one whose panel is open. */
  open: text(),
};

export type Search = Values<typeof shape>;

/** The part that says which. */
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

/** Of all that match, those that an act can be done to; null: there can be none. */
export function narrowed(act: ExecutionAct, filter: ExecutionFilter): ExecutionFilter | null {
  const wanted = filter.status ?? [];
  const status = ACTS_ON[act].filter((each) => wanted.length === 0 || wanted.includes(each));
  return status.length === 0 ? null : { ...filter, status: [...status] };
}

// --- lists that grow at their head -------------------------------------------------------------------------

/** Whether `a` comes behind `b`: by when they were made, which their ids tell, or by their fire times. */
export function isBehind(a: Execution, b: Execution, isByFireTime: boolean): boolean {
  if (isByFireTime && a.fire_ts !== b.fire_ts) {
    return Date.parse(a.fire_ts) < Date.parse(b.fire_ts);
  }
  return a.execution_id < b.execution_id;
}

/** A fresh reading of the first pages, and behind it what was known there before: new rows at the head have
 * pushed it off the last page, and it has not gone. */
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
