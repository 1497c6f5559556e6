import { expect, test } from "vitest";
import { asKind, expressionOf, fieldsOf, patternOf, textOf } from "./cron";

test("fields and text say the same", () => {
  const fields = fieldsOf(" 30  2 * *   mon-fri ");
  expect(fields).toEqual({ second: "", minute: "30", hour: "2", day: "*", month: "*", weekday: "mon-fri" });
  expect(fields && textOf(fields)).toBe("30 2 * * mon-fri");
  const withSeconds = fieldsOf("*/15 * * * * *");
  expect(withSeconds?.second).toBe("*/15");
  expect(withSeconds && textOf(withSeconds)).toBe("*/15 * * * * *");
});

test("an alias has the fields of what it stands for", () => {
  expect(fieldsOf("@Daily")).toMatchObject({ minute: "0", hour: "0" });
  expect(fieldsOf("@reboot")).toBeNull();
  expect(fieldsOf("1 2 3")).toBeNull();
});

test("a field that was emptied is open, and one with spaces stays one field", () => {
  expect(textOf({ second: "", minute: "", hour: "1, 2", day: "*", month: "*", weekday: "*" })).toBe(
    "* 1,2 * * *",
  );
});

test.each([
  ["* * * * *", { kind: "minutes", every: 1 }],
  ["*/15 * * * *", { kind: "minutes", every: 15 }],
  ["5 * * * *", { kind: "hourly", minute: 5 }],
  ["0 0 2 * * *", { kind: "daily", hour: 2, minute: 0 }],
  ["30 2 * * mon-fri", { kind: "weekly", days: [1, 2, 3, 4, 5], hour: 2, minute: 30 }],
  ["30 2 ? * 0,6", { kind: "weekly", days: [6, 7], hour: 2, minute: 30 }],
  ["0 9 * * 5-7", { kind: "weekly", days: [5, 6, 7], hour: 9, minute: 0 }],
  ["0 9 * * fri-0", { kind: "weekly", days: [5, 6, 7], hour: 9, minute: 0 }],
  ["15 6 l * *", { kind: "monthly", day: "L", hour: 6, minute: 15 }],
  ["@weekly", { kind: "weekly", days: [7], hour: 0, minute: 0 }],
])("%s is a plain pattern", (text, pattern) => {
  expect(patternOf(text)).toEqual(pattern);
});

test.each([
  "0 9 * * 5#2",
  "0 9 13 * 5",
  "0 9 1 6 *",
  "0 9-17 * * *",
  "30 0 9 * * *",
  "H 4 * * *",
  "0 99 * * *",
])("%s says more than a plain pattern", (text) => {
  expect(patternOf(text)).toEqual({ kind: "other" });
  expect(expressionOf(patternOf(text), text)).toBe(text);
});

test.each([
  "* * * * *",
  "*/5 * * * *",
  "5 * * * *",
  "30 2 * * *",
  "30 2 * * MON-FRI",
  "0 9 * * MON,WED,SUN",
  "0 9 L * *",
])("%s is written as it was read", (text) => {
  expect(expressionOf(patternOf(text), "")).toBe(text);
});

test("another pattern keeps the time of day", () => {
  expect(expressionOf(asKind("weekly", "30 2 * * *"), "")).toBe("30 2 * * MON-FRI");
  expect(expressionOf(asKind("hourly", "30 2 * * *"), "")).toBe("30 * * * *");
});

test("all days of the week are every day", () => {
  expect(expressionOf({ kind: "weekly", days: [1, 2, 3, 4, 5, 6, 7], hour: 1, minute: 0 }, "")).toBe(
    "0 1 * * *",
  );
});
