import { expect, test } from "vitest";
import { findAfter } from "./neighbours";
import type { Execution } from "./types";

const START = Date.UTC(2026, 0, 1);

function row(minutes: number): Execution {
  const fire_ts = new Date(START + minutes * 60_000).toISOString();
  return { execution_id: `e${minutes}`, fire_ts } as Execution;
}

/** A fake server list: latest first, paginated. */
function serverOf(rows: readonly Execution[]) {
  let asked = 0;
  const read = async (from: string, to: string | null, pageSize: number) => {
    asked += 1;
    const found = rows
      .filter((each) => each.fire_ts >= from && (to === null || each.fire_ts < to))
      .toSorted((a, b) => (a.fire_ts < b.fire_ts ? 1 : -1));
    return { items: found.slice(0, pageSize), isWhole: found.length <= pageSize };
  };
  return { read, asked: () => asked };
}

test("the latest has none after it, which takes one look", async () => {
  const server = serverOf([row(0), row(1)]);
  expect(await findAfter(row(1), row(0), server.read)).toBeNull();
  expect(server.asked()).toBe(1);
});

test("among few, the next is found in one look", async () => {
  const server = serverOf([row(0), row(1), row(2), row(3)]);
  expect(await findAfter(row(1), row(0), server.read)).toEqual(row(2));
  expect(server.asked()).toBe(1);
});

test("among very many, the next is found by a guess from the one before", async () => {
  const server = serverOf(Array.from({ length: 5000 }, (_, minute) => row(minute)));
  expect(await findAfter(row(7), row(6), server.read)).toEqual(row(8));
  expect(server.asked()).toBe(2);
});

test("a long silence before many others is bridged", async () => {
  const server = serverOf([row(0), row(1), ...Array.from({ length: 500 }, (_, each) => row(90_000 + each))]);
  expect(await findAfter(row(1), row(0), server.read)).toEqual(row(90_000));
});
