// What happened at a fire time: on time, late, or skipped. Pure functions.

import type { Fire } from "@/api/schedule-history";
import type { Execution } from "@/api/types";

const LATE_AFTER_MS = 10_000;

/** Milliseconds from the fire time to the creation of its execution. Null: unknown. */
export function lateBy(
  fire: Pick<Fire, "fire_ts">,
  execution: Pick<Execution, "created_ts"> | undefined,
): number | null {
  return execution === undefined
    ? null
    : Math.max(0, Date.parse(execution.created_ts) - Date.parse(fire.fire_ts));
}

/** Whether a fire was late. Delay caused by jitter does not count. */
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

/** Text for a reason code: why a fire time was skipped. */
export function reasonWords(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason] ?? reason);
}

/** "stands for 3 earlier times too". Empty if there were none. */
export function missedWords(count: number): string {
  return count === 0 ? "" : `stands for ${count} earlier ${count === 1 ? "time" : "times"} too`;
}
