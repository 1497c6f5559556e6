// Runs and planned runs per day, in weeks. Pure functions. Days are in UTC, like the statistics.

import type { Status } from "@/api/types";
import { BAD_STATUSES } from "@/api/types";

const DAY_MS = 86_400_000;

export type Cell =
  | {
      readonly kind: "past";
      readonly day: string;
      readonly total: number;
      readonly bad: number;
      readonly words: string;
    }
  | { readonly kind: "planned"; readonly day: string; readonly total: number; readonly words: string }
  /** Not counted: there may have been runs, or may be planned ones. */
  | { readonly kind: "unknown"; readonly day: string; readonly words: string };

export interface HeatGiven {
  readonly now: Date;
  readonly days: readonly { readonly day: string; readonly by_status: Partial<Record<Status, number>> }[];
  /** Start of the complete statistics. Earlier days may be missing. */
  readonly since: Date;
  readonly planned: readonly string[];
  /** `planned` is complete up to this instant. Null: it is complete. */
  readonly plannedUntil: Date | null;
  readonly weeksBack: number;
  readonly weeksAhead: number;
}

export function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}

/** Weeks from Monday to Sunday, oldest first. Today has both past and planned runs. */
export function weeksOf(given: HeatGiven): readonly (readonly Cell[])[] {
  const today = Date.parse(dayOf(given.now));
  const monday = today - ((new Date(today).getUTCDay() + 6) % 7) * DAY_MS;
  const past = new Map(given.days.map((each) => [each.day, each.by_status]));
  const planned = new Map<string, number>();
  for (const fire of given.planned) {
    const day = fire.slice(0, 10);
    planned.set(day, (planned.get(day) ?? 0) + 1);
  }
  const weeks: Cell[][] = [];
  for (let week = -given.weeksBack + 1; week <= given.weeksAhead; week += 1) {
    weeks.push(
      Array.from({ length: 7 }, (_, weekday) => {
        const at = monday + (week * 7 + weekday) * DAY_MS;
        const day = dayOf(new Date(at));
        return at > today
          ? plannedCell(day, at, planned.get(day) ?? 0, given)
          : pastCell(day, at, past.get(day), at === today ? (planned.get(day) ?? 0) : 0, given);
      }),
    );
  }
  return weeks;
}

function pastCell(
  day: string,
  at: number,
  counts: Partial<Record<Status, number>> | undefined,
  toCome: number,
  given: HeatGiven,
): Cell {
  if (counts === undefined && at + DAY_MS <= given.since.getTime()) {
    return { kind: "unknown", day, words: "not counted" };
  }
  const entries = Object.entries(counts ?? {}) as [Status, number][];
  const total = entries.reduce((sum, [, count]) => sum + count, 0);
  const bad = BAD_STATUSES.reduce((sum, status) => sum + (counts?.[status] ?? 0), 0);
  const told = entries.toSorted((a, b) => b[1] - a[1]).map(([status, count]) => `${count} ${status}`);
  if (toCome > 0) told.push(`${toCome} to come`);
  return { kind: "past", day, total, bad, words: told.length === 0 ? "none" : told.join(", ") };
}

function plannedCell(day: string, at: number, total: number, given: HeatGiven): Cell {
  if (given.plannedUntil !== null && at + DAY_MS > given.plannedUntil.getTime()) {
    return { kind: "unknown", day, words: "planned, not counted" };
  }
  return { kind: "planned", day, total, words: total === 0 ? "none planned" : `${total} planned` };
}

/** Colour strength of a day, 1 to 4; 0: no runs. Logarithmic, so that one busy day does not make the
 * others look idle. */
export function strengthOf(count: number, most: number): 0 | 1 | 2 | 3 | 4 {
  if (count <= 0 || most <= 0) {
    return 0;
  }
  const share = Math.log1p(count) / Math.log1p(most);
  return Math.max(1, Math.min(4, Math.ceil(share * 4))) as 1 | 2 | 3 | 4;
}
