// Filters of the schedule list, and how the URL encodes them.

import type { ScheduleSort } from "@/api/schedules";
import { SCHEDULE_STATES, type ScheduleFilter, STATUSES } from "@/api/types";
import { anyOf, oneOf, text, texts, type Values } from "@/routing/search";

export const SORTS = [
  "name",
  "-name",
  "next_run_ts",
  "-next_run_ts",
  "last_run_ts",
  "-last_run_ts",
  "created_ts",
  "-created_ts",
  "updated_ts",
  "-updated_ts",
] as const satisfies readonly ScheduleSort[];

export const OWNERS = ["api", "ui", "code", "file"] as const;
export const PRIORITIES = ["high", "medium", "low"] as const;

export const shape = {
  q: text(),
  state: anyOf(SCHEDULE_STATES),
  last_status: anyOf(STATUSES),
  target: texts(),
  managed_by: anyOf(OWNERS),
  priority: anyOf(PRIORITIES),
  queue: texts(),
  label: texts(),
  calendar: texts(),
  sort: oneOf(SORTS, "name"),
};

export type Search = Values<typeof shape>;

/** The filter that is sent to the API, without the sort order. */
export function filterOf({ sort: _sort, ...which }: Search): ScheduleFilter {
  const given = Object.entries(which).filter(([, value]) => value.length > 0);
  return Object.fromEntries(given) as ScheduleFilter;
}

export function isFiltered(search: Search): boolean {
  return Object.keys(filterOf(search)).length > 0;
}

export const UNFILTERED: Partial<Search> = {
  q: "",
  state: [],
  last_status: [],
  target: [],
  managed_by: [],
  priority: [],
  queue: [],
  label: [],
  calendar: [],
};
