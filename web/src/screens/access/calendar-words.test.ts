import { expect, test } from "vitest";
import { countryName, countryWords, weekdayWords } from "./calendar-words";

test("weekdays are joined as they are said", () => {
  expect([[], [7], [6, 7], [1, 3, 5]].map(weekdayWords)).toEqual([
    "",
    "every Sun",
    "every Sat and Sun",
    "every Mon, Wed and Fri",
  ]);
});

test("a country is named, with what part of it and which holidays", () => {
  expect(countryWords({ country: "DE", subdivision: "BY", categories: ["public", "bank"] })).toBe(
    "Germany (BY), public and bank",
  );
  expect(countryWords({ country: "FR", subdivision: null, categories: [] })).toBe("France");
});

test("letters that no country has stay as they are", () => {
  expect([countryName("de"), countryName("QX"), countryName("DEU"), countryName("")]).toEqual([
    "Germany",
    null,
    null,
    null,
  ]);
});
