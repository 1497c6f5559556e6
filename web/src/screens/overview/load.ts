// Data for the plots of the last hour. Pure functions.

import type { Minute, Status } from "@/api/types";

/** Statuses in stacking order, from the bottom up: successes are at the bottom. */
const LAYERS: readonly Status[] = [
  "success",
  "skipped",
  "cancelled",
  "pending",
  "running",
  "retrying",
  "unknown",
  "timeout",
  "failed",
];

const ALWAYS: readonly Status[] = ["success", "failed"];

export interface Layer {
  status: Status;
  counts: number[];
}

/** Executions per minute, by status. Statuses that do not occur are left out, except those in ALWAYS. */
export function layersOf(minutes: readonly Minute[]): Layer[] {
  return LAYERS.map((status) => ({
    status,
    counts: minutes.map((minute) => minute.by_status[status] ?? 0),
  })).filter(({ status, counts }) => ALWAYS.includes(status) || counts.some((count) => count > 0));
}

export function timesOf(minutes: readonly Minute[]): number[] {
  return minutes.map((minute) => Date.parse(minute.start_ts) / 1000);
}

/** The highest value of a series; null: it has no values. */
export function highest(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>(
    (most, value) => (value !== null && (most === null || value > most) ? value : most),
    null,
  );
}
