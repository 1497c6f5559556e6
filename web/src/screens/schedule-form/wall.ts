// Conversion between instants and local times in a time zone. Pure functions.

interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      weekday: "short",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    formats.set(zone, format);
  }
  return format;
}

export function isZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** All time zones that this browser knows. */
export function zoneNames(): readonly string[] {
  const known = Intl.supportedValuesOf("timeZone");
  return known.includes("UTC") ? known : ["UTC", ...known];
}

function wallAt(instant: number, zone: string): Wall & { weekday: string } {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(instant)
      .map((part) => [part.type, part.value]),
  );
  return {
    weekday: parts.weekday ?? "",
    year: Number(parts.year),
    month: Number(parts.month),
    day: Number(parts.day),
    hour: Number(parts.hour),
    minute: Number(parts.minute),
    second: Number(parts.second),
  };
}

const two = (value: number) => String(value).padStart(2, "0");

/** An instant as a `datetime-local` value: 2026-03-29T03:00, with seconds if not zero. */
export function wallTime(instant: string, zone: string): string {
  const at = Date.parse(instant);
  if (Number.isNaN(at) || !isZone(zone)) {
    return "";
  }
  const wall = wallAt(at, zone);
  const day = `${String(wall.year).padStart(4, "0")}-${two(wall.month)}-${two(wall.day)}`;
  return `${day}T${two(wall.hour)}:${two(wall.minute)}${wall.second === 0 ? "" : `:${two(wall.second)}`}`;
}

/** "Sun 2026-03-29 03:00", with seconds if not zero. */
export function wallWords(instant: Date, zone: string): string {
  const known = isZone(zone) ? zone : "UTC";
  const wall = wallAt(instant.getTime(), known);
  return `${wall.weekday} ${wallTime(instant.toISOString(), known).replace("T", " ")}`;
}

/** Convert a local time to an instant. A time that occurs twice: the first one. A time skipped by a clock
 * change: later by the length of the gap. Null: invalid time or zone. */
export function instantAt(local: string, zone: string): string | null {
  const read = /^(\d{4,6})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?/.exec(local);
  if (read === null || !isZone(zone)) {
    return null;
  }
  const [year, month, day, hour, minute, second] = read.slice(1).map((part) => Number(part ?? 0));
  const shown = Date.UTC(year ?? 0, (month ?? 1) - 1, day, hour, minute, second ?? 0);
  if (Number.isNaN(shown)) {
    return null;
  }
  const before = shown - offsetAt(shown - 86_400_000, zone);
  const after = shown - offsetAt(shown + 86_400_000, zone);
  const found = [Math.min(before, after), Math.max(before, after)].find(
    (each) => each + offsetAt(each, zone) === shown,
  );
  return new Date(found ?? before).toISOString().replace(".000Z", "Z");
}

/** Offset of a zone from UTC at an instant, in milliseconds. */
function offsetAt(instant: number, zone: string): number {
  const wall = wallAt(instant, zone);
  const shown = Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second);
  return shown - Math.floor(instant / 1000) * 1000;
}
