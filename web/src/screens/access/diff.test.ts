import { describe, expect, test } from "vitest";
import { changesBetween, valueWords } from "./diff";

describe("what changed", () => {
  test("is told by place, and what stayed is left out", () => {
    const before = { name: "a", trigger: { kind: "cron", expression: "0 1 * * *" } };
    const after = { name: "a", trigger: { kind: "cron", expression: "0 2 * * *" } };
    expect(changesBetween(before, after)).toEqual([
      { path: "trigger.expression", before: "0 1 * * *", after: "0 2 * * *" },
    ]);
  });

  test("tells what came and what went part by part", () => {
    expect(changesBetween({ window: { hours: [9] } }, { labels: { team: "pay" } })).toEqual([
      { path: "window.hours", before: [9], after: undefined },
      { path: "labels.team", before: undefined, after: "pay" },
    ]);
  });

  test("of something made or deleted is all of it", () => {
    expect(changesBetween(null, { name: "a", tags: {} })).toEqual([
      { path: "name", before: undefined, after: "a" },
      { path: "tags", before: undefined, after: {} },
    ]);
    expect(changesBetween({ name: "a" }, null)).toEqual([{ path: "name", before: "a", after: undefined }]);
  });

  test("tells null from what is not there", () => {
    expect(changesBetween({ end: null }, { end: "x" })).toEqual([{ path: "end", before: null, after: "x" }]);
    expect(changesBetween({}, { end: null })).toEqual([{ path: "end", before: undefined, after: null }]);
  });

  test("compares lists as a whole, and by value", () => {
    expect(changesBetween({ days: [{ a: 1, b: 2 }] }, { days: [{ b: 2, a: 1 }] })).toEqual([]);
    expect(changesBetween({ days: [1, 2] }, { days: [2, 1] })).toEqual([
      { path: "days", before: [1, 2], after: [2, 1] },
    ]);
  });

  test("of nothing is nothing", () => {
    expect(changesBetween(null, null)).toEqual([]);
  });
});

test("texts are shown as they are, and an empty one is seen", () => {
  expect([valueWords("a b"), valueWords(""), valueWords([1]), valueWords(null)]).toEqual([
    "a b",
    '""',
    "[1]",
    "null",
  ]);
});
