import { describe, expect, test } from "vitest";
import type { Timeline } from "@/api/timeline";
import { readSearch } from "@/routing/search";
import { busiest, columnsOf, leftOut, rowsOf, strength, wordsOf } from "./cells";
import { ticksOf } from "./ticks";
import { closer, moved, rangeOf, shape } from "./view";

const START = Date.UTC(2026, 0, 1);
const at = (minutes: number) => new Date(START + minutes * 60_000).toISOString();

function timeline(parts: Partial<Timeline>): Timeline {
  return {
    from_ts: at(0),
    to_ts: at(4),
    bin_seconds: 60,
    bins: [0, 1, 2, 3].map((bin) => ({ start_ts: at(bin), planned: 0, by_status: {} })),
    schedules: [],
    planned_by_schedule: {},
    complete_from_ts: at(0),
    is_partial: false,
    ...parts,
  };
}

const load = (
  id: string,
  counts_by_status: Timeline["schedules"][number]["counts_by_status"],
  planned_counts: number[] = [],
): Timeline["schedules"][number] => {
  const rows = Object.entries(counts_by_status);
  return {
    schedule_id: id,
    name: id,
    counts: [0, 1, 2, 3].map((bin) => rows.reduce((total, [, counts]) => total + (counts[bin] ?? 0), 0)),
    by_status: Object.fromEntries(
      rows.map(([status, counts]) => [status, counts.reduce((a, b) => a + b, 0)]),
    ),
    counts_by_status,
    planned_counts,
  };
};

describe("rows", () => {
  test("come busiest first, past and planned together", () => {
    const told = timeline({
      schedules: [
        load("a", { success: [3, 0, 0, 0] }),
        load("b", { success: [1, 0, 0, 0] }, [0, 0, 4, 5]),
        load("c", {}, [0, 0, 0, 5]),
      ],
    });
    expect(rowsOf(told).map(({ id, past, planned }) => [id, past, planned])).toEqual([
      ["b", 1, 9],
      ["c", 0, 5],
      ["a", 3, 0],
    ]);
  });

  test("that did not fit are counted", () => {
    const told = timeline({
      schedules: [load("a", {}, [0, 0, 0, 5])],
      planned_by_schedule: { a: 5, b: 1, c: 2 },
    });
    expect(leftOut(told)).toBe(2);
  });
});

describe("a cell", () => {
  const [row] = rowsOf(
    timeline({
      schedules: [load("a", { success: [2, 1, 0, 0], failed: [0, 1, 0, 0] }, [0, 0, 0, 3])],
    }),
  );

  test("has the colour of the worst in it", () => {
    expect(row?.cells.map((cell) => [cell.bin, cell.worst])).toEqual([
      [0, "success"],
      [1, "failed"],
      [3, null],
    ]);
  });

  test("is told in words", () => {
    expect(row?.cells.map(wordsOf)).toEqual(["2 success", "1 success, 1 failed", "3 planned"]);
  });
});

test("the busiest stretch counts what is planned as well; none is busiest where there is nothing", () => {
  const bins: Timeline["bins"] = [
    { start_ts: at(0), planned: 0, by_status: { success: 4, failed: 1 } },
    { start_ts: at(1), planned: 6, by_status: {} },
  ];
  expect(busiest(columnsOf(timeline({ bins })))?.bin).toBe(1);
  expect(busiest(columnsOf(timeline({})))).toBeNull();
});

test("a colour is stronger where there is more, and never gone where there is something", () => {
  expect(strength(1, 1000)).toBeGreaterThan(0);
  expect(strength(10, 1000)).toBeGreaterThan(strength(1, 1000));
  expect(strength(1000, 1000)).toBe(1);
});

describe("the range", () => {
  const now = new Date("2026-01-10T12:07:00Z");

  test("has the present in its middle until the reader goes elsewhere", () => {
    const { from, to, bins } = rangeOf({ span: "day", from: "" }, now, false);
    expect([from.toISOString(), to.toISOString(), bins]).toEqual([
      "2026-01-10T00:00:00.000Z",
      "2026-01-11T00:00:00.000Z",
      48,
    ]);
  });

  test("moves by halves", () => {
    const range = rangeOf({ span: "day", from: "2026-01-10T00:00:00Z" }, now, false);
    expect(moved(range, -1)).toBe("2026-01-09T12:00:00.000Z");
  });

  test("looked at closer keeps what was looked at in its place", () => {
    const range = rangeOf({ span: "day", from: "2026-01-10T00:00:00Z" }, now, false);
    expect(closer(range, "day", new Date("2026-01-10T12:00:00Z"))).toEqual({
      span: "quarter",
      from: "2026-01-10T09:00:00.000Z",
    });
  });

  test("an address that is none follows the present", () => {
    expect(readSearch(shape, "?from=soon&span=decade")).toEqual({ span: "day", from: "", view: "grid" });
  });
});

describe("the axis", () => {
  test("is written on at round times, and at the first bin of a day with its date", () => {
    const from = Date.UTC(2026, 0, 1, 20);
    const ticks = ticksOf(from, 30 * 60_000, 16, "UTC", 4);
    expect(ticks.map(({ bin, label }) => `${bin} ${label}`)).toEqual([
      "0 20:00",
      "4 22:00",
      "8 01-02",
      "12 02:00",
    ]);
  });

  test("is round in the zone that it is shown in", () => {
    const ticks = ticksOf(Date.UTC(2026, 0, 1, 0), 30 * 60_000, 12, "Asia/Kolkata", 3);
    expect(ticks.map((tick) => tick.label)).toEqual(["06:00", "08:00", "10:00"]);
  });
});
