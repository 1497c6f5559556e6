import { expect, test } from "vitest";
import { barHeight, summaryOf } from "./Sparkline";

test("the longest is as high as can be, and what took no time still shows", () => {
  expect(barHeight(10, 10)).toBe(20);
  expect(barHeight(0, 10)).toBe(4);
  expect(barHeight(null, 10)).toBe(4);
});

test("one slow run does not flatten the others", () => {
  expect(barHeight(0.1, 100)).toBeGreaterThan(8);
});

test("in words the most frequent comes first", () => {
  expect(summaryOf(["success", "failed", "success"])).toBe("2 success, 1 failed");
  expect(summaryOf([])).toBe("none yet");
});
