import { expect, test } from "vitest";
import { holdPlaces } from "./steady";

interface Row {
  id: string;
  text?: string;
}
const idOf = (row: Row) => row.id;
const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id }));
const hold = (held: string[], fresh: Row[]) =>
  holdPlaces(held, new Map(held.map((id) => [id, { id, text: "old" }])), fresh, idOf);
const ids = (shown: readonly Row[]) => shown.map(idOf).join(" ");

test("what changes in a row is shown in its place", () => {
  const steady = hold(["a", "b"], [{ id: "a" }, { id: "b", text: "new" }]);
  expect(steady.rows[1]).toEqual({ id: "b", text: "new" });
  expect(steady).toMatchObject({ arrived: 0, isReordered: false });
});

test("a new row between others waits, and is counted", () => {
  const steady = hold(["a", "c"], rows("a", "b", "c"));
  expect([ids(steady.rows), steady.arrived]).toEqual(["a c", 1]);
});

test("new rows behind all others are shown: they move nothing", () => {
  const steady = hold(["a", "b"], rows("a", "b", "c", "d"));
  expect([ids(steady.rows), steady.arrived]).toEqual(["a b c d", 0]);
});

test("a row that is gone stays where it was, as it was last", () => {
  const steady = hold(["a", "b", "c"], rows("a", "c"));
  expect([ids(steady.rows), [...steady.gone], steady.rows[1]?.text]).toEqual(["a b c", ["b"], "old"]);
});

test("another order is noticed and not followed", () => {
  const steady = hold(["a", "b", "c"], rows("c", "a", "b"));
  expect([ids(steady.rows), steady.isReordered]).toEqual(["a b c", true]);
});

test("rows that came or went do not count as another order", () => {
  expect(hold(["a", "b", "c"], rows("x", "a", "c")).isReordered).toBe(false);
});

test("where nothing is left of what was held, all that is new is shown behind it", () => {
  const steady = hold(["a"], rows("x", "y"));
  expect([ids(steady.rows), steady.gone.size]).toEqual(["a x y", 1]);
});
