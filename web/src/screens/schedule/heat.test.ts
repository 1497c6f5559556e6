import { expect, test } from "vitest";
import { type HeatGiven, strengthOf, weeksOf } from "./heat";

// A Wednesday.
const given: HeatGiven = {
  now: new Date("2026-11-18T12:00:00Z"),
  days: [
    { day: "2026-11-16", by_status: { success: 3, failed: 1 } },
    { day: "2026-11-18", by_status: { success: 2 } },
  ],
  since: new Date("2026-11-10T08:00:00Z"),
  planned: ["2026-11-18T20:00:00Z", "2026-11-19T20:00:00Z", "2026-11-19T21:00:00Z"],
  plannedUntil: null,
  weeksBack: 2,
  weeksAhead: 1,
};

test("weeks begin on Monday, and the present one is the last of those back", () => {
  const weeks = weeksOf(given);
  expect(weeks).toHaveLength(3);
  expect(weeks[1]?.[0]).toEqual({
    kind: "past",
    day: "2026-11-16",
    total: 4,
    bad: 1,
    words: "3 success, 1 failed",
  });
  expect(weeks[2]?.[6]?.day).toBe("2026-11-29");
});

test("today has what was and what is to come", () => {
  expect(weeksOf(given)[1]?.[2]).toMatchObject({ kind: "past", words: "2 success, 1 to come" });
  expect(weeksOf(given)[1]?.[3]).toMatchObject({ kind: "planned", total: 2 });
});

test("a day that was not counted is not told as one without anything", () => {
  const weeks = weeksOf(given);
  expect(weeks[0]?.[0]).toMatchObject({ kind: "unknown" });
  expect(weeks[0]?.[1]).toMatchObject({ kind: "past", words: "none" });
});

test("beyond what was asked for nothing is known of the plan", () => {
  const weeks = weeksOf({ ...given, plannedUntil: new Date("2026-11-20T06:00:00Z") });
  expect(weeks[1]?.[3]).toMatchObject({ kind: "planned" });
  expect(weeks[1]?.[4]).toMatchObject({ kind: "unknown" });
});

test("a busy day does not hide the others", () => {
  expect(strengthOf(0, 1000)).toBe(0);
  expect(strengthOf(1, 1000)).toBe(1);
  expect(strengthOf(40, 1000)).toBe(3);
  expect(strengthOf(1000, 1000)).toBe(4);
});
