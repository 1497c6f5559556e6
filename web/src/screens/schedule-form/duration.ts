// Lengths of time as they are typed: a number and a unit. Pure.

export const UNITS = ["s", "min", "h", "d"] as const;
export type Unit = (typeof UNITS)[number];

const SECONDS: Record<Unit, number> = { s: 1, min: 60, h: 3600, d: 86_400 };
export const UNIT_WORDS: Record<Unit, string> = { s: "seconds", min: "minutes", h: "hours", d: "days" };

export interface Length {
  readonly amount: string;
  readonly unit: Unit;
}

/** In the largest unit of which it is a whole number. */
export function lengthOf(seconds: number): Length {
  const unit = UNITS.toReversed().find((each) => seconds >= SECONDS[each] && seconds % SECONDS[each] === 0);
  return { amount: String(unit ? seconds / SECONDS[unit] : seconds), unit: unit ?? "s" };
}

/** Null: what was typed is no number. */
export function secondsOf({ amount, unit }: Length): number | null {
  const number = numberOf(amount);
  return number === null || number < 0 ? null : roundOff(number * SECONDS[unit]);
}

/** Of a text that is a number and nothing else. */
export function numberOf(text: string): number | null {
  const trimmed = text.trim().replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) {
    return null;
  }
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : null;
}

/** 0.1 min is 6 s, and not 6.000000000000001. */
function roundOff(value: number): number {
  return Number(value.toPrecision(12));
}
