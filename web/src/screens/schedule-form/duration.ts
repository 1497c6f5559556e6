// Durations as typed: a number and a unit. Pure functions.

export const UNITS = ["s", "min", "h", "d"] as const;
export type Unit = (typeof UNITS)[number];

const SECONDS: Record<Unit, number> = { s: 1, min: 60, h: 3600, d: 86_400 };
export const UNIT_WORDS: Record<Unit, string> = { s: "seconds", min: "minutes", h: "hours", d: "days" };

export interface Length {
  readonly amount: string;
  readonly unit: Unit;
}

/** A duration in the largest unit that gives a whole number. */
export function lengthOf(seconds: number): Length {
  const unit = UNITS.toReversed().find((each) => seconds >= SECONDS[each] && seconds % SECONDS[each] === 0);
  return { amount: String(unit ? seconds / SECONDS[unit] : seconds), unit: unit ?? "s" };
}

/** Duration in seconds. Null: not a number, or negative. */
export function secondsOf({ amount, unit }: Length): number | null {
  const number = numberOf(amount);
  return number === null || number < 0 ? null : roundOff(number * SECONDS[unit]);
}

/** Parse text that is only a number. Null: it is not. */
export function numberOf(text: string): number | null {
  const trimmed = text.trim().replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) {
    return null;
  }
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : null;
}

/** Remove floating-point noise: 0.1 min is 6 s, not 6.000000000000001. */
function roundOff(value: number): number {
  return Number(value.toPrecision(12));
}
