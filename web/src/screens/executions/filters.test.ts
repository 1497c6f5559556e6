import { expect, test } from "vitest";
import type { Execution } from "@/api/types";
import { readSearch } from "@/routing/search";
import { canBe, filterOf, narrowed, shape, withTail } from "./filters";
import { localOf, rangeWords } from "./range";

const ID = "01a1e2da-d24f-75ca-a843-21837c50c3a8";
const row = (execution_id: string, fire_ts = "2026-01-01T00:00:00Z") =>
  ({ execution_id, fire_ts }) as Execution;
const ids = (rows: readonly Execution[]) => rows.map((each) => each.execution_id).join(" ");

test("a filter has what was asked for, and neither the panel nor the freezing", () => {
  const search = readSearch(shape, `?status=failed&schedule_id=${ID}&live=off&open=${ID}`);
  expect(filterOf(search)).toEqual({ status: ["failed"], schedule_id: [ID] });
  expect(search.live).toBe("off");
});

test("what the API would refuse counts as not given", () => {
  expect(filterOf(readSearch(shape, "?fire_from=yesterday&schedule_id=x&status=burning"))).toEqual({});
});

test("an instant with an offset is asked for in UTC", () => {
  expect(filterOf(readSearch(shape, "?fire_from=2026-03-29T09:30:00%2B02:00"))).toEqual({
    fire_from: "2026-03-29T07:30:00.000Z",
  });
});

test("an act on all that match is done to those alone that it can be done to", () => {
  expect(narrowed("retry", { queue: ["mail"] })).toEqual({
    queue: ["mail"],
    status: ["failed", "timeout", "cancelled", "unknown"],
  });
  expect(narrowed("retry", { status: ["success", "failed"] })).toEqual({ status: ["failed"] });
  expect(narrowed("cancel", { status: ["failed"] })).toBeNull();
});

test("what has ended well is neither tried again nor cancelled", () => {
  expect([canBe("retry", "success"), canBe("cancel", "success")]).toEqual([false, false]);
  expect([canBe("retry", "skipped"), canBe("cancel", "retrying")]).toEqual([false, true]);
});

test("rows that new ones have pushed off the last page stay known", () => {
  expect(ids(withTail([row("5"), row("4"), row("3")], [row("3"), row("2"), row("1")], false))).toBe(
    "5 4 3 2 1",
  );
});

test("a row that is missing among the fresh ones is not kept: it has gone", () => {
  expect(ids(withTail([row("4"), row("2")], [row("4"), row("3"), row("2")], false))).toBe("4 2");
});

test("a list by fire times goes on behind the earliest of them, whatever the ids", () => {
  const fresh = [row("1", "2026-01-03T00:00:00Z"), row("9", "2026-01-02T00:00:00Z")];
  const known = [row("5", "2026-01-02T12:00:00Z"), row("7", "2026-01-01T00:00:00Z")];
  expect(ids(withTail(fresh, known, true))).toBe("1 9 7");
});

test("a range is told by the ends that it has", () => {
  const now = new Date("2026-03-29T10:00:00Z");
  const told = (from: string, to: string) => rangeWords(from, to, "UTC", now);
  expect(told("2026-03-29T09:30:00Z", "")).toBe("from 09:30:00");
  expect(told("", "2026-03-28T08:00:00Z")).toBe("before 03-28 08:00");
  expect(told("2026-03-28T08:00:00Z", "2026-03-29T09:30:00Z")).toBe("03-28 08:00 to 09:30:00");
});

test("a field for local times shows the instant that it is read from", () => {
  const at = "2026-03-29T07:30:05.000Z";
  expect(new Date(localOf(at)).toISOString()).toBe(at);
  expect(localOf("")).toBe("");
});
