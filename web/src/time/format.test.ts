import { describe, expect, test } from "vitest";
import { count, duration, fullInstant, instant, relative, remaining } from "./format";

const now = new Date("2026-03-29T10:00:00Z");
const at = (text: string) => new Date(text);

describe("an instant", () => {
  test("of today is its time alone", () => {
    expect(instant(at("2026-03-29T12:30:05Z"), "UTC", now)).toBe("12:30:05");
  });

  test("is of today or not by the zone it is shown in", () => {
    expect(instant(at("2026-03-29T22:30:00Z"), "Europe/Berlin", now)).toBe("03-30 00:30");
  });

  test("of another year has its year", () => {
    expect(instant(at("2027-01-01T00:00:00Z"), "UTC", now)).toBe("2027-01-01 00:00");
  });

  test("in full tells the offset that holds then", () => {
    expect(fullInstant(at("2026-03-29T01:00:00Z"), "Europe/Berlin")).toBe(
      "Sun 2026-03-29 03:00:00 GMT+2, Europe/Berlin",
    );
    expect(fullInstant(at("2026-03-29T00:59:59Z"), "Europe/Berlin")).toBe(
      "Sun 2026-03-29 01:59:59 GMT+1, Europe/Berlin",
    );
  });

  test("in a zone that the browser does not know is shown in UTC", () => {
    expect(instant(at("2026-03-29T12:30:05Z"), "Mars/Olympus", now)).toBe("12:30:05");
  });
});

test("relative times name their largest unit and never round up", () => {
  expect(relative(at("2026-03-29T10:00:59.9Z"), now)).toBe("in 59 s");
  expect(relative(at("2026-03-29T08:00:01Z"), now)).toBe("1 h ago");
  expect(relative(at("2026-03-29T10:00:00.4Z"), now)).toBe("now");
});

test("what remains is never shown as less than it is", () => {
  expect(remaining(400)).toBe("1 s");
  expect(remaining(59_001)).toBe("1:00");
  expect(remaining(3_600_000)).toBe("1 h 0 min");
  expect(remaining(90_000_000)).toBe("1 d 1 h");
  expect(remaining(-5)).toBe("0 s");
});

test("durations fit their size", () => {
  expect([0.0004, 0.012, 1, 1.44, 59.6, 200, 7500].map(duration)).toEqual([
    "400 µs",
    "12 ms",
    "1 s",
    "1.4 s",
    "60 s",
    "3 min 20 s",
    "2 h 5 min",
  ]);
});

test("a count that was cut says so", () => {
  expect([count(1234), count(10_000, true), count(1_500_000)]).toEqual(["1,234", "10 k+", "1.5 M"]);
});
