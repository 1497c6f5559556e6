import { expect, test } from "vitest";
import { isLate, lateBy, missedWords, reasonWords } from "./lateness";

const fire = { fire_ts: "2026-11-16T05:00:00Z" };

test("a fire is late by how long after its time it was acted on", () => {
  expect(lateBy(fire, { created_ts: "2026-11-16T05:00:30Z" })).toBe(30_000);
  expect(lateBy(fire, undefined)).toBeNull();
});

test("what is spread on purpose is not late", () => {
  expect(isLate(30_000, 0)).toBe(true);
  expect(isLate(30_000, 60)).toBe(false);
  expect(isLate(null, 0)).toBe(false);
});

test("a reason that is not known is told as it is", () => {
  expect(reasonWords("overlap")).toMatch(/still/);
  expect(reasonWords("sunspots")).toBe("sunspots");
  expect(missedWords(1)).toMatch(/1 earlier time /);
});
