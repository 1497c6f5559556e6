import { expect, test } from "vitest";
import { lengthOf, secondsOf } from "./duration";
import { instantAt, wallTime, wallWords } from "./wall";

test("a wall clock and its instant lead to each other", () => {
  expect(wallTime("2026-07-01T10:00:00Z", "Europe/Berlin")).toBe("2026-07-01T12:00");
  expect(instantAt("2026-07-01T12:00", "Europe/Berlin")).toBe("2026-07-01T10:00:00Z");
  expect(instantAt("2026-01-01T09:30:15", "Asia/Kolkata")).toBe("2026-01-01T04:00:15Z");
});

test("a time that clocks show twice is the first", () => {
  expect(instantAt("2026-10-25T02:30", "Europe/Berlin")).toBe("2026-10-25T00:30:00Z");
});

test("a time that clocks leave out is as much later as they were set forward", () => {
  expect(instantAt("2026-03-29T02:30", "Europe/Berlin")).toBe("2026-03-29T01:30:00Z");
});

test("what is no time or no zone is no instant", () => {
  expect(instantAt("", "UTC")).toBeNull();
  expect(instantAt("2026-03-29T02:30", "Europe/Berln")).toBeNull();
  expect(wallTime("soon", "UTC")).toBe("");
});

test("seconds are told where there are some", () => {
  expect(wallWords(new Date("2026-11-17T01:30:00Z"), "UTC")).toBe("Tue 2026-11-17 01:30");
  expect(wallWords(new Date("2026-11-17T01:30:05Z"), "UTC")).toBe("Tue 2026-11-17 01:30:05");
});

test("a length is told in the largest unit that is whole", () => {
  expect(lengthOf(3600)).toEqual({ amount: "1", unit: "h" });
  expect(lengthOf(90)).toEqual({ amount: "90", unit: "s" });
  expect(lengthOf(0)).toEqual({ amount: "0", unit: "s" });
  expect(lengthOf(0.5)).toEqual({ amount: "0.5", unit: "s" });
  expect(secondsOf({ amount: "0.1", unit: "min" })).toBe(6);
  expect(secondsOf({ amount: "a few", unit: "min" })).toBeNull();
  expect(secondsOf({ amount: "", unit: "s" })).toBeNull();
});
