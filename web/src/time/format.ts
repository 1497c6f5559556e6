// Formatting of times and durations. Pure: the current time is a parameter.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string, options: Intl.DateTimeFormatOptions, name: string): Intl.DateTimeFormat {
  const key = `${name} ${zone}`;
  let format = formats.get(key);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    } catch {
      // The server may know a time zone that this browser does not.
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
    }
    formats.set(key, format);
  }
  return format;
}

function partsOf(at: Date, zone: string): Record<string, string> {
  const format = formatOf(
    zone,
    {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZoneName: "shortOffset",
    },
    "parts",
  );
  return Object.fromEntries(format.formatToParts(at).map((part) => [part.type, part.value]));
}

/** 14:05:09 */
export function clockTime(at: Date, zone: string): string {
  const p = partsOf(at, zone);
  return `${p.hour}:${p.minute}:${p.second}`;
}

/** 14:05 */
export function shortClockTime(at: Date, zone: string): string {
  const p = partsOf(at, zone);
  return `${p.hour}:${p.minute}`;
}

/** 2026-03-29 */
export function calendarDay(at: Date, zone: string): string {
  const p = partsOf(at, zone);
  return `${p.year}-${p.month}-${p.day}`;
}

/** A short form: only the time if it is today, otherwise day and time. */
export function instant(at: Date, zone: string, now: Date): string {
  const day = calendarDay(at, zone);
  const today = calendarDay(now, zone);
  if (day === today) {
    return clockTime(at, zone);
  }
  const shown = day.slice(0, 4) === today.slice(0, 4) ? day.slice(5) : day;
  return `${shown} ${shortClockTime(at, zone)}`;
}

/** Sun 2026-03-29 03:00:00 GMT+2, Europe/Berlin */
export function fullInstant(at: Date, zone: string): string {
  const p = partsOf(at, zone);
  return `${p.weekday} ${calendarDay(at, zone)} ${clockTime(at, zone)} ${p.timeZoneName}, ${zone}`;
}

const STEPS: readonly (readonly [number, string])[] = [
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** A span in its largest unit: 3 min, 2 h, 5 d. */
export function span(milliseconds: number): string {
  const length = Math.abs(milliseconds);
  for (const [size, name] of STEPS) {
    if (length >= size) {
      return `${Math.floor(length / size)} ${name}`;
    }
  }
  return "0 s";
}

/** "in 3 min", "2 h ago", "now". */
export function relative(at: Date, now: Date): string {
  const ahead = at.getTime() - now.getTime();
  if (Math.abs(ahead) < SECOND) {
    return "now";
  }
  return ahead > 0 ? `in ${span(ahead)}` : `${span(ahead)} ago`;
}

/** A remaining time in two units: 2 d 4 h, 3 h 12 min, 4:05, 12 s. */
export function remaining(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / SECOND));
  if (seconds < 60) {
    return `${seconds} s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return `${hours} h ${minutes % 60} min`;
  }
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How long something took: 840 µs, 12 ms, 1.4 s, 3 min 20 s, 2 h 5 min. */
export function duration(seconds: number): string {
  if (seconds < 0.001) {
    return `${Math.round(seconds * 1_000_000)} µs`;
  }
  if (seconds < 1) {
    return `${Math.round(seconds * 1000)} ms`;
  }
  if (seconds < 60) {
    return `${seconds < 10 ? trimmed(seconds) : Math.round(seconds)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return joined(minutes, "min", Math.floor(seconds % 60), "s");
  }
  return joined(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function joined(large: number, largeName: string, small: number, smallName: string): string {
  return small === 0 ? `${large} ${largeName}` : `${large} ${largeName} ${small} ${smallName}`;
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

/** 1,234; 12.3 k; 1.2 M. With a plus if the value is capped: there may be more. */
export function count(value: number, isCapped = false): string {
  const text =
    value < 10_000
      ? value.toLocaleString("en")
      : value < 1_000_000
        ? `${trimmed(value / 1000)} k`
        : `${trimmed(value / 1_000_000)} M`;
  return isCapped ? `${text}+` : text;
}
