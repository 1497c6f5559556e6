// What is drawn of each schedule in each bin. Pure.
//
// The timeline tells how many executions of a schedule fell on a bin, and how they stand, but not both at once;
// and of what is planned it tells how many times a schedule has in all. The schedule's own fire times tell the
// rest, as far as they go: some cells of a very busy schedule are only known by their number.

import { type Fire, MOST_FIRES, type Timeline } from "@/api/timeline";
import { STATUSES, type Status } from "@/api/types";

export interface Row {
  id: string;
  /** Null: the timeline does not tell it. */
  name: string | null;
  counts: readonly number[];
  byStatus: Partial<Record<Status, number>>;
  past: number;
  planned: number;
}

/** All schedules with something in the range, busiest first. */
export function rowsOf(told: Timeline): Row[] {
  const rows = told.schedules.map((each) => ({
    id: each.schedule_id,
    name: each.name,
    counts: each.counts,
    byStatus: each.by_status,
    past: sum(each.counts),
    planned: told.planned_by_schedule[each.schedule_id] ?? 0,
  }));
  const known = new Set(rows.map((row) => row.id));
  for (const [id, planned] of Object.entries(told.planned_by_schedule)) {
    if (!known.has(id)) rows.push({ id, name: null, counts: [], byStatus: {}, past: 0, planned });
  }
  const total = (row: Row) => row.past + row.planned;
  return rows.sort((a, b) => total(b) - total(a) || (a.id < b.id ? -1 : 1));
}

/** From the worst to the best: the first that there is gives a cell its colour. */
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

export function worstOf(counts: Partial<Record<Status, number>>): Status | null {
  return WORST_FIRST.find((status) => (counts[status] ?? 0) > 0) ?? null;
}

export interface Cell {
  bin: number;
  past: number;
  planned: number;
  /** Whether `planned` is reckoned rather than told. */
  isAbout: boolean;
  /** Of the past: null where it is not told. */
  worst: Status | null;
  byStatus: Partial<Record<Status, number>>;
}

interface Bins {
  /** Milliseconds. */
  from: number;
  width: number;
  count: number;
}

export function binsOf(told: Timeline): Bins {
  return { from: Date.parse(told.from_ts), width: told.bin_seconds * 1000, count: told.bins.length };
}

/** Whether the timeline alone tells all of a row. */
export function isTold(row: Row): boolean {
  return row.planned === 0 && Object.keys(row.byStatus).length <= 1;
}

/** The cells of a row that have something in them, in order. */
export function cellsOf(row: Row, bins: Bins, fires: readonly Fire[]): Cell[] {
  const only = onlyStatus(row);
  const past = pastOf(row, bins, fires);
  const planned = plannedOf(row, bins, fires);
  const cells: Cell[] = [];
  for (let bin = 0; bin < bins.count; bin += 1) {
    const number = row.counts[bin] ?? 0;
    const ahead = planned.counts[bin] ?? 0;
    if (number === 0 && ahead === 0) continue;
    const told = only === null ? (past[bin] ?? {}) : { [only]: number };
    // Those that were not told may be anything; that something went wrong is certain.
    const worst = worstOf(told);
    const isWhole = sum(Object.values(told)) >= number;
    const isCertain = isWhole || (worst !== null && ["failed", "timeout", "unknown"].includes(worst));
    cells.push({
      bin,
      past: number,
      planned: ahead,
      isAbout: planned.aboutFrom <= bin && ahead > 0,
      worst: isCertain ? worst : null,
      byStatus: isWhole ? told : {},
    });
  }
  return cells;
}

function onlyStatus(row: Row): Status | null {
  const found = STATUSES.filter((status) => (row.byStatus[status] ?? 0) > 0);
  return found.length === 1 ? (found[0] ?? null) : null;
}

function pastOf(row: Row, bins: Bins, fires: readonly Fire[]): Partial<Record<Status, number>>[] {
  const counts: Partial<Record<Status, number>>[] = [];
  for (const fire of fires) {
    const bin = binOf(fire, bins);
    if (fire.status === null || bin === null || (row.counts[bin] ?? 0) === 0) continue;
    const here = counts[bin] ?? {};
    here[fire.status] = (here[fire.status] ?? 0) + 1;
    counts[bin] = here;
  }
  return counts;
}

function plannedOf(row: Row, bins: Bins, fires: readonly Fire[]): { counts: number[]; aboutFrom: number } {
  const counts = new Array<number>(bins.count).fill(0);
  const ahead = fires.filter((fire) => fire.state === "planned" && fire.reason === null);
  let last = -1;
  for (const fire of ahead) {
    const bin = binOf(fire, bins);
    if (bin === null) continue;
    counts[bin] = (counts[bin] ?? 0) + 1;
    last = Math.max(last, bin);
  }
  const untold = row.planned - ahead.length;
  if (ahead.length < MOST_FIRES || untold <= 0 || last < 0) {
    return { counts, aboutFrom: bins.count };
  }
  // The rest is spread evenly over what is left, the bin where the telling ended included: it was cut there.
  const already = counts[last] ?? 0;
  const each = (untold + already) / (bins.count - last);
  for (let bin = last; bin < bins.count; bin += 1) counts[bin] = Math.max(1, Math.round(each));
  return { counts, aboutFrom: last };
}

function binOf(fire: Fire, bins: Bins): number | null {
  const bin = Math.floor((Date.parse(fire.fire_ts) - bins.from) / bins.width);
  return bin >= 0 && bin < bins.count ? bin : null;
}

// --- all schedules together --------------------------------------------------------------------------------

export interface Column {
  bin: number;
  start: string;
  total: number;
  planned: number;
  byStatus: Partial<Record<Status, number>>;
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

/** The busiest stretch; null: there is nothing at all. */
export function busiest(columns: readonly Column[]): Column | null {
  const most = columns.reduce<Column | null>(
    (best, each) => (best === null || each.total > best.total ? each : best),
    null,
  );
  return most === null || most.total === 0 ? null : most;
}

/** How strongly a number is coloured, 0 to 1, by its logarithm: one busy bin must not fade all others. */
export function strength(number: number, most: number): number {
  return most <= 1 ? 1 : Math.log1p(number) / Math.log1p(most);
}

/** In words: "3 failed, 12 success, 4 planned". */
export function wordsOf(cell: Pick<Cell, "past" | "planned" | "isAbout" | "byStatus" | "worst">): string {
  const told = STATUSES.filter((status) => (cell.byStatus[status] ?? 0) > 0);
  const parts = told.map((status) => `${cell.byStatus[status]} ${status}`);
  if (parts.length === 0 && cell.past > 0) {
    parts.push(`${cell.past} in all${cell.worst === null ? "" : `, some ${cell.worst}`}`);
  }
  if (cell.planned > 0) parts.push(`${cell.isAbout ? "about " : ""}${cell.planned} planned`);
  return parts.join(", ");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
