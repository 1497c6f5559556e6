import { describe, expect, test } from "vitest";
import type { Fire, Timeline } from "@/api/timeline";
import { readSearch } from "@/routing/search";
import { binsOf, busiest, cellsOf, columnsOf, isTold, rowsOf, strength, wordsOf } from "./cells";
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

function fired(minutes: number, status: Fire["status"]): Fire {
  return {
    fire_ts: at(minutes),
    state: "fired",
    reason: null,
    execution_id: "e",
    status,
    missed_count: 0,
    missed_from_ts: null,
  };
}

const planned = (minutes: number): Fire => ({
  ...fired(minutes, null),
  state: "planned",
  execution_id: null,
});

const load = (id: string, counts: number[], by_status: Timeline["schedules"][number]["by_status"]) => ({
  schedule_id: id,
  name: id,
  counts,
  by_status,
});

describe("rows", () => {
  test("come busiest first, past and planned together", () => {
    const told = timeline({
      schedules: [load("a", [3, 0, 0, 0], { success: 3 }), load("b", [1, 0, 0, 0], { success: 1 })],
      planned_by_schedule: { b: 9, c: 5 },
    });
    expect(rowsOf(told).map(({ id, past, planned: ahead }) => [id, past, ahead])).toEqual([
      ["b", 1, 9],
      ["c", 0, 5],
      ["a", 3, 0],
    ]);
  });

  test("with one status and nothing to come need no further asking", () => {
    const [row] = rowsOf(timeline({ schedules: [load("a", [2, 1, 0, 0], { success: 3 })] }));
    expect(row && isTold(row)).toBe(true);
    expect(row && cellsOf(row, binsOf(timeline({})), []).map((cell) => [cell.bin, cell.worst])).toEqual([
      [0, "success"],
      [1, "success"],
    ]);
  });
});

describe("a cell", () => {
  const told = timeline({ schedules: [load("a", [2, 2, 0, 0], { success: 3, failed: 1 })] });
  const [row] = rowsOf(told);
  if (row === undefined) throw new Error("there is a row");

  test("has the colour of the worst in it", () => {
    const fires = [fired(0, "success"), fired(0.5, "success"), fired(1, "failed"), fired(1.5, "success")];
    expect(cellsOf(row, binsOf(told), fires).map((cell) => cell.worst)).toEqual(["success", "failed"]);
  });

  test("of which not all is told does not pretend that all went well", () => {
    const [first, second] = cellsOf(row, binsOf(told), [fired(0, "success"), fired(1, "failed")]);
    expect([first?.worst, second?.worst]).toEqual([null, "failed"]);
    expect(first && wordsOf(first)).toBe("2 in all");
    expect(second && wordsOf(second)).toBe("2 in all, some failed");
  });

  test("to come is told by the planned times, and not by those that will be held back", () => {
    const [ahead] = rowsOf(timeline({ planned_by_schedule: { a: 2 } }));
    const fires = [planned(2), planned(3), { ...planned(1), reason: "window" }];
    expect(ahead && cellsOf(ahead, binsOf(told), fires).map((cell) => [cell.bin, cell.planned])).toEqual([
      [2, 1],
      [3, 1],
    ]);
  });

  test("beyond what the API tells is reckoned, and says so", () => {
    const [ahead] = rowsOf(timeline({ planned_by_schedule: { a: 4000 } }));
    const fires = Array.from({ length: 1000 }, (_, each) => planned((each / 1000) * 0.999));
    const cells = ahead === undefined ? [] : cellsOf(ahead, binsOf(told), fires);
    expect(cells.map((cell) => [cell.planned, cell.isAbout])).toEqual([
      [1000, true],
      [1000, true],
      [1000, true],
      [1000, true],
    ]);
    expect(cells[3] && wordsOf(cells[3])).toBe("about 1000 planned");
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
