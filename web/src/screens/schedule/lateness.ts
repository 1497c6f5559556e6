// How a fire time was decided: on time, late, or not at all. Pure.

import type { Fire } from "@/api/schedule-history";
import type { Execution } from "@/api/types";

const LATE_AFTER_MS = 10_000;

/** How long after its time a fire was acted on; null: not known. */
export function lateBy(
  fire: Pick<Fire, "fire_ts">,
  execution: Pick<Execution, "created_ts"> | undefined,
): number | null {
  return execution === undefined
    ? null
    : Math.max(0, Date.parse(execution.created_ts) - Date.parse(fire.fire_ts));
}

/** What is spread on purpose is not late. */
export function isLate(late: number | null, jitterSeconds: number): boolean {
  return late !== null && late > LATE_AFTER_MS + jitterSeconds * 1000;
}

const REASONS: Readonly<Record<string, string>> = {
  overlap: "an earlier run still went on",
  misfire: "it was too late",
  window: "outside of its days and hours",
  calendar: "a day of its calendars",
  paused: "it was paused",
  inactive: "it was inactive",
  deleted: "it was deleted",
  error: "it could not be planned",
};

/** Why a time did not fire. */
export function reasonWords(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason] ?? reason);
}

/** "and 3 times before it, from 02:00 on" */
export function missedWords(count: number): string {
  return count === 0 ? "" : `stands for ${count} earlier ${count === 1 ? "time" : "times"} too`;
}
