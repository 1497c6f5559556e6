import { expect, test } from "vitest";
import type { Minute } from "@/api/types";
import { stacked } from "@/ui/stacking";
import { highest, layersOf } from "./load";

const minute = (by_status: Minute["by_status"]): Minute => ({
  start_ts: "2026-03-01T00:00:00Z",
  by_status,
  late_p50_seconds: null,
  late_p99_seconds: null,
});

test("a status that does not occur has no layer, but for those that one looks for", () => {
  expect(layersOf([minute({ skipped: 2 })]).map((layer) => layer.status)).toEqual([
    "success",
    "skipped",
    "failed",
  ]);
});

test("a minute without a status counts none of it", () => {
  expect(layersOf([minute({ success: 3 }), minute({})])[0]?.counts).toEqual([3, 0]);
});

test("layers stand on the sum of those below", () => {
  expect(
    stacked([
      [1, 2],
      [3, null],
      [0, 5],
    ]),
  ).toEqual([
    [1, 2],
    [4, 2],
    [4, 7],
  ]);
});

test("the highest of nothing is nothing", () => {
  expect([highest([null]), highest([null, 0.2, 0.1])]).toEqual([null, 0.2]);
});
