// Sets of days, as used in calendars. Pure. A day is text such as 2026-12-24: text order is date order.

import type { CalendarSpec } from "@/api/calendars";

export interface Range {
  readonly from: string;
  /** Inclusive. */
  readonly to: string;
}

type Written = CalendarSpec["days"];

const DAY_MS = 86_400_000;

export function rangesOf(written: Written): Range[] {
  return merged(written.map((each) => (typeof each === "string" ? { from: each, to: each } : each)));
}

export function writtenAs(ranges: readonly Range[]): Written {
  return ranges.map(({ from, to }) => (from === to ? from : { from, to }));
}

/** Sort ranges and join those that overlap or are adjacent. */
export function merged(ranges: readonly Range[]): Range[] {
  const made: Range[] = [];
  for (const range of [...ranges].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = made.at(-1);
    if (last !== undefined && range.from <= dayAfter(last.to)) {
      if (range.to > last.to) made[made.length - 1] = { from: last.from, to: range.to };
    } else {
      made.push(range);
    }
  }
  return made;
}

export function has(ranges: readonly Range[], day: string): boolean {
  return ranges.some(({ from, to }) => from <= day && day <= to);
}

/** Add the day if it is missing, else remove it. */
export function toggled(ranges: readonly Range[], day: string): Range[] {
  if (!has(ranges, day)) {
    return merged([...ranges, { from: day, to: day }]);
  }
  return ranges.flatMap((range) => {
    if (day < range.from || day > range.to) return [range];
    return [
      { from: range.from, to: dayBefore(day) },
      { from: dayAfter(day), to: range.to },
    ].filter(({ from, to }) => from <= to);
  });
}

export function without(ranges: readonly Range[], gone: Range): Range[] {
  return ranges.filter(({ from, to }) => from !== gone.from || to !== gone.to);
}

/** Total number of days. */
export function countDays(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { from, to }) => sum + (utc(to) - utc(from)) / DAY_MS + 1, 0);
}

export function dayAfter(day: string): string {
  return textOf(utc(day) + DAY_MS);
}

export function dayBefore(day: string): string {
  return textOf(utc(day) - DAY_MS);
}

/** The day that is `days` days later. */
export function shifted(day: string, days: number): string {
  return textOf(utc(day) + days * DAY_MS);
}

/** 1 = Monday … 7 = Sunday. */
export function weekdayOf(day: string): number {
  return new Date(utc(day)).getUTCDay() || 7;
}

/** Weeks of a month such as 2026-03, starting on Monday. Null: a day of another month. */
export function weeksOf(month: string): (string | null)[][] {
  const days: (string | null)[] = Array.from({ length: weekdayOf(`${month}-01`) - 1 }, () => null);
  for (let day = `${month}-01`; day.startsWith(month); day = dayAfter(day)) days.push(day);
  while (days.length % 7 !== 0) days.push(null);
  return Array.from({ length: days.length / 7 }, (_, week) => days.slice(week * 7, week * 7 + 7));
}

/** The month that is `months` months later. */
export function monthAfter(month: string, months: number): string {
  const [year = 1970, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + months, 1)).toISOString().slice(0, 7);
}

/** 24 Dec 2026, or 24 Dec 2026 – 2 Jan 2027. */
export function rangeWords({ from, to }: Range): string {
  return from === to ? dayWords(from) : `${dayWords(from)} – ${dayWords(to)}`;
}

const WORDS = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});

export function dayWords(day: string): string {
  return WORDS.format(utc(day));
}

const MONTH_WORDS = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });

export function monthWords(month: string): string {
  return MONTH_WORDS.format(utc(`${month}-01`));
}

export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(utc(text)) && textOf(utc(text)) === text;
}

function utc(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

function textOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
