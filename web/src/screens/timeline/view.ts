// The time range of the timeline. The address holds its length and its start.

import { type Field, oneOf, type Values } from "@/routing/search";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const SPANS = ["hour", "quarter", "day", "week", "month"] as const;
export type Span = (typeof SPANS)[number];

interface Measure {
  words: string;
  length: number;
  /** Length of a bin in ms, on wide and on narrow screens. The API must support these lengths. */
  bin: readonly [wide: number, narrow: number];
}

export const MEASURES: Record<Span, Measure> = {
  hour: { words: "Hour", length: HOUR, bin: [MINUTE, 2 * MINUTE] },
  quarter: { words: "6 hours", length: 6 * HOUR, bin: [10 * MINUTE, 15 * MINUTE] },
  day: { words: "Day", length: DAY, bin: [30 * MINUTE, HOUR] },
  week: { words: "Week", length: 7 * DAY, bin: [3 * HOUR, 6 * HOUR] },
  month: { words: "30 days", length: 30 * DAY, bin: [12 * HOUR, DAY] },
};

/** The start of the range; empty: the range follows the current time. */
const start: Field<string> = {
  read: ([given = ""]) => {
    const at = Date.parse(given);
    // The API accepts no times before 1970, and no schedule has fire times after this year.
    return at >= 0 && at < Date.UTC(9000, 0) ? new Date(at).toISOString() : "";
  },
  write: (value) => (value === "" ? [] : [value]),
};

export const shape = {
  span: oneOf(SPANS, "day"),
  from: start,
  view: oneOf(["grid", "table"] as const, "grid"),
};
export type View = Values<typeof shape>;

export interface Range {
  from: Date;
  to: Date;
  /** Milliseconds. */
  bin: number;
  bins: number;
}

/** Compute the range. It begins at `from`; if that is empty, `now` is in the middle. */
export function rangeOf({ span, from }: Pick<View, "span" | "from">, now: Date, isNarrow: boolean): Range {
  const { length, bin: widths } = MEASURES[span];
  const bin = widths[isNarrow ? 1 : 0];
  const begin = from === "" ? now.getTime() - length / 2 : Date.parse(from);
  const first = Math.floor(begin / bin) * bin;
  return { from: new Date(first), to: new Date(first + length), bin, bins: Math.round(length / bin) };
}

/** The start of the range after moving it by `halves` halves of its length. */
export function moved(range: Range, halves: number): string {
  const length = range.to.getTime() - range.from.getTime();
  return new Date(Math.max(0, range.from.getTime() + (halves * length) / 2)).toISOString();
}

/** Zoom in to the next shorter length. The instant `around` keeps its position on the screen. */
export function closer(range: Range, span: Span, around: Date): Pick<View, "span" | "from"> {
  const next = SPANS[Math.max(0, SPANS.indexOf(span) - 1)] ?? span;
  const share = (around.getTime() - range.from.getTime()) / (range.to.getTime() - range.from.getTime());
  const from = around.getTime() - Math.min(1, Math.max(0, share)) * MEASURES[next].length;
  return { span: next, from: new Date(Math.max(0, from)).toISOString() };
}
