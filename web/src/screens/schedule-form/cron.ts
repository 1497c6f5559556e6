// Cron expressions as text, as fields, and as a few simple patterns. The text is what is stored; the other
// two forms are parsed from it and written back to it. Pure functions.

export const FIELDS = ["second", "minute", "hour", "day", "month", "weekday"] as const;
export type FieldName = (typeof FIELDS)[number];
export type Fields = Readonly<Record<FieldName, string>>;

const ALIASES: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

function plain(text: string): string {
  const trimmed = text.trim().replace(/\s+/g, " ");
  return ALIASES[trimmed.toLowerCase()] ?? trimmed;
}

/** Fields of an expression. Empty second: the expression has 5 fields. Null: neither 5 nor 6 fields. */
export function fieldsOf(text: string): Fields | null {
  const parts = plain(text).split(" ");
  if (parts.length === 5) {
    parts.unshift("");
  }
  const [second, minute, hour, day, month, weekday] = parts;
  if (parts.length !== 6 || !minute || !hour || !day || !month || !weekday) {
    return null;
  }
  return { second: second ?? "", minute, hour, day, month, weekday };
}

export function textOf(fields: Fields): string {
  const told = FIELDS.map((name) => fields[name].replace(/\s+/g, ""));
  return (told[0] === "" ? told.slice(1) : told).map((part) => part || "*").join(" ");
}

// --- patterns ------------------------------------------------------------------------------------------

interface Clock {
  readonly hour: number;
  readonly minute: number;
}

export type Pattern =
  | { readonly kind: "minutes"; readonly every: number }
  | { readonly kind: "hourly"; readonly minute: number }
  | ({ readonly kind: "daily" } & Clock)
  /** 1 = Monday … 7 = Sunday. */
  | ({ readonly kind: "weekly"; readonly days: readonly number[] } & Clock)
  /** "L": last day of the month. */
  | ({ readonly kind: "monthly"; readonly day: number | "L" } & Clock)
  | { readonly kind: "other" };

export const PATTERN_KINDS = ["minutes", "hourly", "daily", "weekly", "monthly", "other"] as const;
export type PatternKind = Pattern["kind"];

/** The simple pattern of an expression. "other": no simple pattern can express it. */
export function patternOf(text: string): Pattern {
  const fields = fieldsOf(text);
  if (fields === null || fields.month !== "*" || !["", "0"].includes(fields.second)) {
    return { kind: "other" };
  }
  const isAnyDay = isOpen(fields.day) && isOpen(fields.weekday);
  const minute = numberIn(fields.minute, 0, 59);
  const hour = numberIn(fields.hour, 0, 23);
  if (fields.hour === "*" && isAnyDay) {
    const every = fields.minute === "*" ? 1 : stepOf(fields.minute);
    if (every !== null) return { kind: "minutes", every };
    if (minute !== null) return { kind: "hourly", minute };
  }
  if (minute === null || hour === null) {
    return { kind: "other" };
  }
  if (isAnyDay) {
    return { kind: "daily", hour, minute };
  }
  if (isOpen(fields.day)) {
    const days = weekdaysOf(fields.weekday);
    return days === null ? { kind: "other" } : { kind: "weekly", days, hour, minute };
  }
  const day = fields.day.toUpperCase() === "L" ? "L" : numberIn(fields.day, 1, 31);
  return day === null || !isOpen(fields.weekday) ? { kind: "other" } : { kind: "monthly", day, hour, minute };
}

/** The expression of a pattern. For `other`, `before` is returned unchanged. */
export function expressionOf(pattern: Pattern, before: string): string {
  switch (pattern.kind) {
    case "minutes":
      return pattern.every === 1 ? "* * * * *" : `*/${pattern.every} * * * *`;
    case "hourly":
      return `${pattern.minute} * * * *`;
    case "daily":
      return `${pattern.minute} ${pattern.hour} * * *`;
    case "weekly":
      return `${pattern.minute} ${pattern.hour} * * ${weekdaysText(pattern.days)}`;
    case "monthly":
      return `${pattern.minute} ${pattern.hour} ${pattern.day} * *`;
    case "other":
      return before;
  }
}

/** Switch to another pattern. Hour and minute are kept where the new pattern has them. */
export function asKind(kind: PatternKind, text: string): Pattern {
  const now = patternOf(text);
  if (now.kind === kind) {
    return now;
  }
  const minute = "minute" in now ? now.minute : 0;
  const hour = "hour" in now ? now.hour : 9;
  switch (kind) {
    case "minutes":
      return { kind, every: 15 };
    case "hourly":
      return { kind, minute };
    case "daily":
      return { kind, hour, minute };
    case "weekly":
      return { kind, days: [1, 2, 3, 4, 5], hour, minute };
    case "monthly":
      return { kind, day: 1, hour, minute };
    case "other":
      return { kind };
  }
}

function isOpen(field: string): boolean {
  return field === "*" || field === "?";
}

function numberIn(text: string, least: number, most: number): number | null {
  if (!/^\d{1,2}$/.test(text)) return null;
  const number = Number(text);
  return number >= least && number <= most ? number : null;
}

function stepOf(text: string): number | null {
  const read = /^\*\/(\d{1,2})$/.exec(text);
  const step = Number(read?.[1] ?? 0);
  return step >= 1 && step <= 59 ? step : null;
}

const NAMES = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/** Weekdays of a field such as MON-FRI, 1,3,5 or 0. Null: not a plain list of days. */
function weekdaysOf(text: string): readonly number[] | null {
  const days = new Set<number>();
  for (const term of text.toUpperCase().split(",")) {
    const [first, last, ...more] = term.split("-").map(weekdayOf);
    if (first === undefined || first === null || last === null || more.length > 0) return null;
    // Sunday is 0 or 7: as the start of a range it may come before Monday.
    const end = last === undefined ? first : last === 0 ? 7 : last;
    if (end < first) return null;
    for (let day = first; day <= end; day += 1) days.add(day === 0 ? 7 : day);
  }
  return [...days].sort((a, b) => a - b);
}

function weekdayOf(text: string): number | null {
  const at = NAMES.indexOf(text);
  return at >= 0 ? at + 1 : numberIn(text, 0, 7);
}

/** Weekdays as a cron field: MON-FRI, or MON,WED,SUN. All days: `*`. */
function weekdaysText(days: readonly number[]): string {
  const sorted = [...new Set(days)].sort((a, b) => a - b);
  if (sorted.length === 0 || sorted.length === 7) {
    return "*";
  }
  const runs: number[][] = [];
  for (const day of sorted) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1) === day - 1) run.push(day);
    else runs.push([day]);
  }
  const name = (day: number | undefined) => NAMES[(day ?? 1) - 1];
  return runs
    .map((run) => (run.length > 2 ? `${name(run[0])}-${name(run.at(-1))}` : run.map(name).join(",")))
    .join(",");
}
