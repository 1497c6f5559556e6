import { describe, expect, test } from "vitest";
import {
  countDays,
  isDay,
  monthAfter,
  rangesOf,
  shifted,
  toggled,
  weekdayOf,
  weeksOf,
  writtenAs,
} from "./days";

describe("a set of days", () => {
  test("reads days and ranges in any order, and makes those that touch one", () => {
    const written = ["2026-12-26", { from: "2026-12-24", to: "2026-12-25" }, "2026-05-01"];
    expect(rangesOf(written)).toEqual([
      { from: "2026-05-01", to: "2026-05-01" },
      { from: "2026-12-24", to: "2026-12-26" },
    ]);
  });

  test("is written with single days as their dates", () => {
    const ranges = [
      { from: "2026-05-01", to: "2026-05-01" },
      { from: "2026-12-24", to: "2026-12-26" },
    ];
    expect(writtenAs(ranges)).toEqual(["2026-05-01", { from: "2026-12-24", to: "2026-12-26" }]);
  });

  test("gets a day that it had not, joined with its neighbours", () => {
    const ranges = [
      { from: "2026-02-27", to: "2026-02-27" },
      { from: "2026-03-01", to: "2026-03-01" },
    ];
    expect(toggled(ranges, "2026-02-28")).toEqual([{ from: "2026-02-27", to: "2026-03-01" }]);
  });

  test("loses a day that it had, in the middle of a range as well", () => {
    const ranges = [{ from: "2026-12-24", to: "2026-12-26" }];
    expect(toggled(ranges, "2026-12-25")).toEqual([
      { from: "2026-12-24", to: "2026-12-24" },
      { from: "2026-12-26", to: "2026-12-26" },
    ]);
    expect(toggled(toggled(ranges, "2026-12-25"), "2026-12-25")).toEqual(ranges);
  });

  test("counts both ends of a range, over a leap day", () => {
    expect(countDays([{ from: "2028-02-28", to: "2028-03-01" }])).toBe(3);
  });
});

describe("a month", () => {
  test("is shown in weeks from Monday on", () => {
    const weeks = weeksOf("2026-03"); // March 1st is a Sunday
    expect(weeks[0]).toEqual([null, null, null, null, null, null, "2026-03-01"]);
    expect(weeks).toHaveLength(6);
    expect(weeks.at(-1)?.slice(0, 3)).toEqual(["2026-03-30", "2026-03-31", null]);
  });

  test("is followed by the next, over the year's end", () => {
    expect([monthAfter("2026-12", 1), monthAfter("2026-01", -1)]).toEqual(["2027-01", "2025-12"]);
  });
});

test("days are moved and named without the reader's time zone", () => {
  expect(shifted("2026-03-29", 7)).toBe("2026-04-05");
  expect(weekdayOf("2026-03-29")).toBe(7);
});

test("only a date that exists is a day", () => {
  expect(["2026-02-28", "2026-02-30", "2026-2-3", ""].map(isDay)).toEqual([true, false, false, false]);
});
