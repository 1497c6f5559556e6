// Parts of calendars as text. Pure functions.

import type { CalendarSpec } from "@/api/calendars";

type Country = CalendarSpec["countries"][number];

const NAMES = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

/** "every Sat and Sun". Empty: no weekdays. */
export function weekdayWords(weekdays: readonly number[]): string {
  const names = weekdays.map((day) => NAMES[day - 1] ?? "");
  if (names.length === 0) return "";
  const last = names.at(-1);
  return names.length === 1 ? `every ${last}` : `every ${names.slice(0, -1).join(", ")} and ${last}`;
}

/** "Germany (BY), public and bank". */
export function countryWords({ country, subdivision, categories }: Country): string {
  const name = countryName(country) ?? country;
  const where = subdivision ? `${name} (${subdivision})` : name;
  return categories && categories.length > 0 ? `${where}, ${categories.join(" and ")}` : where;
}

const REGIONS = new Intl.DisplayNames("en", { type: "region", fallback: "none" });

/** The name of a country by its two-letter code. Null: unknown code. */
export function countryName(code: string): string | null {
  const letters = code.trim().toUpperCase();
  return /^[A-Z]{2}$/.test(letters) ? (REGIONS.of(letters) ?? null) : null;
}
