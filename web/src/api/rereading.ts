// What to read again after the stream reported a change: only what the change concerns, and each part no more
// often than its gap allows.

import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import type { Told } from "./stream";
import { isOpen } from "./types";

/** Changes come in groups: they are read together. */
const GATHER_MS = 300;
const GAP_MS = 3000;
/** For lists of several pages, all of which are read again, and for the timeline: one answer counts much. */
const LONG_GAP_MS = 15_000;

/** All that the stream reports on: read again when something was missed, and from time to time without a stream. */
const STREAMED: readonly string[] = [
  "schedules",
  "schedule",
  "status",
  "timeline",
  "execution",
  "executions",
  "instances",
  "load",
];

/** Sorts by what an execution changes. */
const SORTS_BY_RUNS = ["next_run_ts", "-next_run_ts", "last_run_ts", "-last_run_ts"];

type Known = Pick<Query, "queryKey" | "state">;

/** Whether a change makes a reading old. Rows of the list of schedules are read one by one: see ScheduleRows. */
export function isMadeOld({ queryKey: key }: Known, told: Told): boolean {
  const [name, part] = key;
  if (name === "schedules" && part !== "list") {
    // What was asked for while typing, or before an act, is not kept up to date.
    return false;
  }
  switch (told.kind) {
    case "status":
      return false;
    case "reset":
      return STREAMED.includes(String(name));
    case "schedule":
      switch (name) {
        case "schedules":
          return isReordered(told.data.change) || dependsOnState(key);
        case "schedule":
          return part === told.data.schedule_id;
        default:
          return name === "status" || name === "timeline";
      }
    case "execution":
      switch (name) {
        case "schedules":
          return !isOpen(told.data.status) && dependsOnState(key);
        case "schedule":
          return part === told.data.schedule_id;
        case "executions":
          return true;
        case "execution":
          return part === told.data.execution_id && !isOpen(told.data.status);
        case "timeline":
          // What is planned changes with schedules alone.
          return part === "load";
        default:
          return name === "status" && !isOpen(told.data.status);
      }
  }
}

/** Whether rows may come, go or move. */
function isReordered(change: string): boolean {
  return change === "created" || change === "deleted" || change === "edited";
}

/** Whether it depends on runs or pauses which schedules a list has, and in which order. */
function dependsOnState([, , filter, sort]: QueryKey): boolean {
  const wanted = (filter ?? {}) as Record<string, unknown>;
  return "state" in wanted || "last_status" in wanted || SORTS_BY_RUNS.includes(String(sort));
}

/** How long to wait between two readings of it, at least. */
export function gapOf({ queryKey: [name], state }: Known): number {
  const pages = (state.data as { pages?: readonly unknown[] } | undefined)?.pages;
  return name === "timeline" || (pages?.length ?? 1) > 1 ? LONG_GAP_MS : GAP_MS;
}

/** Reads again what has become old. */
export class Rereading {
  private readonly old = new Set<Query>();
  private readonly readAt = new WeakMap<Query, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: QueryClient) {}

  add(told: Told): void {
    // Also what is not shown now: it is read when it is shown again.
    for (const query of this.client.getQueryCache().getAll()) {
      if (isMadeOld(query, told)) this.old.add(query);
    }
    this.plan();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private plan(): void {
    if (this.old.size > 0 && this.timer === undefined) {
      const due = Math.min(...[...this.old].map((query) => this.dueAt(query)));
      this.timer = setTimeout(() => this.read(), Math.max(GATHER_MS, due - Date.now()));
    }
  }

  private read(): void {
    this.timer = undefined;
    const now = Date.now();
    for (const query of this.old) {
      // An answer under way may be older than the change, and starting anew would keep a next page from coming.
      if (query.state.fetchStatus === "fetching" || this.dueAt(query) > now) continue;
      this.old.delete(query);
      this.readAt.set(query, now);
      void this.client.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }
    this.plan();
  }

  private dueAt(query: Query): number {
    return (this.readAt.get(query) ?? Number.NEGATIVE_INFINITY) + gapOf(query);
  }
}
