// Refetches queries after the stream reported a change: only those that the change affects, and each no more
// often than its gap allows.

import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import type { Told } from "./stream";
import { isOpen } from "./types";

/** How long to collect changes before refetching: they come in bursts. */
const GATHER_MS = 300;
const GAP_MS = 3000;
/** For lists with several loaded pages (all are refetched) and for the timeline: these are expensive. */
const LONG_GAP_MS = 15_000;

/** Queries that the stream reports on: refetched when events were missed, and polled without a stream. */
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

/** Sort orders that an execution can change. */
const SORTS_BY_RUNS = ["next_run_ts", "-next_run_ts", "last_run_ts", "-last_run_ts"];

type Known = Pick<Query, "queryKey" | "state">;

/** Whether an event makes a query stale. ScheduleRows refetches single rows of the schedule lists. */
export function isMadeOld({ queryKey: key }: Known, told: Told): boolean {
  const [name, part] = key;
  if (name === "schedules" && part !== "list") {
    // Other queries on schedules, such as suggestions and bulk counts, are not updated by the stream.
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
          // Planned times change only with schedules.
          return part === "load";
        default:
          return name === "status" && !isOpen(told.data.status);
      }
  }
}

/** Whether the change can add, remove or move rows. */
function isReordered(change: string): boolean {
  return change === "created" || change === "deleted" || change === "edited";
}

/** Whether runs or pauses can change which schedules a list contains, or their order. */
function dependsOnState([, , filter, sort]: QueryKey): boolean {
  const wanted = (filter ?? {}) as Record<string, unknown>;
  return "state" in wanted || "last_status" in wanted || SORTS_BY_RUNS.includes(String(sort));
}

/** The minimum time between two fetches of a query, in ms. */
export function gapOf({ queryKey: [name], state }: Known): number {
  const pages = (state.data as { pages?: readonly unknown[] } | undefined)?.pages;
  return name === "timeline" || (pages?.length ?? 1) > 1 ? LONG_GAP_MS : GAP_MS;
}

/** Collects stale queries and refetches them. */
export class Rereading {
  private readonly old = new Set<Query>();
  private readonly readAt = new WeakMap<Query, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: QueryClient) {}

  add(told: Told): void {
    // Includes queries that are not on the page now: those are fetched when they are shown again.
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
      // Skip a query that is being fetched: its answer may be older than the change, so it stays stale, and a
      // restart would abort the loading of a next page.
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
