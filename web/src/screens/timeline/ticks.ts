// Positions and labels of the ticks on the time axis. Pure functions.

import { calendarDay, shortClockTime } from "@/time/format";

export interface Tick {
  /** The bin that begins at the tick. */
  bin: number;
  label: string;
  isDay: boolean;
}

const HOUR = 3_600_000;
/** Possible distances between two labels, in ms. The first one that leaves enough space is used. */
const STEPS = [
  HOUR / 12,
  HOUR / 6,
  HOUR / 4,
  HOUR / 2,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  24 * HOUR,
];

/** At most about `most` labels, at round times of the zone. The first label of a day is its date. */
export function ticksOf(from: number, width: number, bins: number, zone: string, most: number): Tick[] {
  const length = width * bins;
  const step =
    STEPS.find((each) => each >= width && length / each <= most) ??
    Math.ceil(length / most / (24 * HOUR)) * 24 * HOUR;
  const ticks: Tick[] = [];
  let dayBefore = calendarDay(new Date(from - 1), zone);
  let days = 0;
  for (let bin = 0; bin < bins; bin += 1) {
    const at = new Date(from + bin * width);
    const day = calendarDay(at, zone);
    const isDay = day !== dayBefore;
    dayBefore = day;
    if (isDay) days += 1;
    const isDue =
      step >= 24 * HOUR
        ? isDay && (days - 1) % Math.round(step / (24 * HOUR)) === 0
        : isRound(at, step, zone);
    if (isDue || (isDay && step < 24 * HOUR)) {
      ticks.push({ bin, label: isDay ? day.slice(5) : shortClockTime(at, zone), isDay });
    }
  }
  return ticks;
}

function isRound(at: Date, step: number, zone: string): boolean {
  const [hour = 0, minute = 0] = shortClockTime(at, zone).split(":").map(Number);
  const passed = hour * HOUR + minute * 60_000;
  return passed % step === 0;
}
