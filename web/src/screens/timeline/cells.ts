// What the timeline draws for each schedule in each bin. Pure functions.

import type { Timeline } from "@/api/timeline";
import { STATUSES, type Status } from "@/api/types";

type Counts = Partial<Record<Status, number>>;

export interface Row {
  id: string;
  name: string;
  counts: readonly number[];
  byStatus: Counts;
  past: number;
  planned: number;
  cells: readonly Cell[];
}

export interface Cell {
  bin: number;
  past: number;
  planned: number;
  /** The worst status among past executions; null: none. */
  worst: Status | null;
  byStatus: Counts;
}

/** The busiest schedules in the range, by past and planned executions together, busiest first. */
export function rowsOf(told: Timeline): Row[] {
  const rows = told.schedules.map((each) => ({
    id: each.schedule_id,
    name: each.name ?? "a deleted schedule",
    counts: each.counts,
    byStatus: each.by_status,
    past: sum(each.counts),
    planned: sum(each.planned_counts),
    cells: cellsOf(each),
  }));
  const total = (row: Row) => row.past + row.planned;
  return rows.sort((a, b) => total(b) - total(a) || (a.id < b.id ? -1 : 1));
}

/** The number of schedules with planned executions in the range, but too few to get a row. */
export function leftOut(told: Timeline): number {
  const shown = new Set(told.schedules.map((each) => each.schedule_id));
  return Object.keys(told.planned_by_schedule).filter((id) => !shown.has(id)).length;
}

/** The non-empty cells of a row, in order. */
function cellsOf(load: Timeline["schedules"][number]): Cell[] {
  const cells: Cell[] = [];
  for (const [bin, past] of load.counts.entries()) {
    const planned = load.planned_counts[bin] ?? 0;
    if (past === 0 && planned === 0) continue;
    const byStatus: Counts = {};
    for (const status of STATUSES) {
      const number = load.counts_by_status[status]?.[bin] ?? 0;
      if (number > 0) byStatus[status] = number;
    }
    cells.push({ bin, past, planned, worst: worstOf(byStatus), byStatus });
  }
  return cells;
}

/** Statuses from worst to best. The first one that occurs in a cell gives the cell its colour. */
export const WORST_FIRST: readonly Status[] = [
  "failed",
  "timeout",
  "unknown",
  "retrying",
  "running",
  "pending",
  "cancelled",
  "skipped",
  "success",
];

export function worstOf(counts: Counts): Status | null {
  return WORST_FIRST.find((status) => (counts[status] ?? 0) > 0) ?? null;
}

export interface Bins {
  /** Milliseconds. */
  from: number;
  width: number;
  count: number;
}

export function binsOf(told: Timeline): Bins {
  return { from: Date.parse(told.from_ts), width: told.bin_seconds * 1000, count: told.bins.length };
}

// --- all schedules together --------------------------------------------------------------------------------

export interface Column {
  bin: number;
  start: string;
  total: number;
  planned: number;
  byStatus: Counts;
}

export function columnsOf(told: Timeline): Column[] {
  return told.bins.map((each, bin) => ({
    bin,
    start: each.start_ts,
    planned: each.planned,
    byStatus: each.by_status,
    total: each.planned + sum(Object.values(each.by_status)),
  }));
}

/** The busiest bin; null: all are empty. */
export function busiest(columns: readonly Column[]): Column | null {
  const most = columns.reduce<Column | null>(
    (best, each) => (best === null || each.total > best.total ? each : best),
    null,
  );
  return most === null || most.total === 0 ? null : most;
}

/** Colour strength of a number, 0 to 1. The scale is logarithmic: one busy bin must not fade all others. */
export function strength(number: number, most: number): number {
  return most <= 1 ? 1 : Math.log1p(number) / Math.log1p(most);
}

/** The counts of a cell in words: "3 failed, 12 success, 4 planned". */
export function wordsOf(cell: Pick<Cell, "planned" | "byStatus">): string {
  const parts = STATUSES.filter((status) => (cell.byStatus[status] ?? 0) > 0).map(
    (status) => `${cell.byStatus[status]} ${status}`,
  );
  if (cell.planned > 0) parts.push(`${cell.planned} planned`);
  return parts.join(", ");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
