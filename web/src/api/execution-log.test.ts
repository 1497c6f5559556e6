import { expect, test } from "vitest";
import { EMPTY_LOG, isAtLeast, type LogLine, readOn } from "./execution-log";

const lines = (...numbers: number[]) => numbers.map((line) => ({ attempt: 1, line }) as LogLine);
const numbers = (log: { lines: readonly LogLine[] }) => log.lines.map((line) => line.line);

test("pages are put behind each other", () => {
  const first = readOn(EMPTY_LOG, { items: lines(1, 2), next_page_token: "a" });
  const both = readOn(first, { items: lines(3), next_page_token: "" });
  expect([numbers(both), both.token, both.hasMore]).toEqual([[1, 2, 3], "a", false]);
});

test("the last page is read again where it may have grown, and its lines come once", () => {
  let log = readOn(EMPTY_LOG, { items: lines(1, 2), next_page_token: "a" });
  log = readOn(log, { items: lines(3), next_page_token: "" });
  log = readOn(log, { items: lines(3, 4), next_page_token: "b" });
  expect([numbers(log), log.token, log.hasMore]).toEqual([[1, 2, 3, 4], "b", true]);
});

test("a reading that found nothing new changes nothing", () => {
  const log = readOn(EMPTY_LOG, { items: lines(1), next_page_token: "" });
  expect(readOn(log, { items: lines(1), next_page_token: "" })).toBe(log);
});

test("a level includes the graver ones, and unknown ones are never hidden", () => {
  expect([isAtLeast("error", "warning"), isAtLeast("info", "warning")]).toEqual([true, false]);
  expect(isAtLeast("notice", "error")).toBe(true);
});
