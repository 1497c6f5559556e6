import { QueryClient, type QueryKey, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isMadeOld, Rereading } from "./rereading";
import type { Told } from "./stream";

const ended = { kind: "execution", data: { schedule_id: "s", execution_id: "e", status: "success" } } as Told;
const paused = { kind: "schedule", data: { schedule_id: "s", change: "paused" } } as Told;
const created = { kind: "schedule", data: { schedule_id: "s", change: "created" } } as Told;
const isOld = (queryKey: QueryKey, told: Told) =>
  isMadeOld({ queryKey, state: {} } as Parameters<typeof isMadeOld>[0], told);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("a change makes old what it concerns, and nothing of other schedules and executions", () => {
  expect(isOld(["schedule", "s", "fires", 5], ended)).toBe(true);
  expect(isOld(["schedule", "other"], ended)).toBe(false);
  expect(isOld(["execution", "e", "attempts"], ended)).toBe(true);
  expect(isOld(["execution", "other"], ended)).toBe(false);
  expect(isOld(["timeline", "load", "from", "to", 60], ended)).toBe(true);
  expect(isOld(["timeline", "next hour"], ended)).toBe(false);
});

test("a list of schedules is read as a whole where rows may come, go or move", () => {
  const byName: QueryKey = ["schedules", "list", { q: "x" }, "name"];
  const paused24: QueryKey = ["schedules", "list", { state: ["paused"] }, "name"];
  const next: QueryKey = ["schedules", "list", {}, "next_run_ts"];
  expect([byName, paused24, next].map((key) => isOld(key, ended))).toEqual([false, true, true]);
  expect([byName, paused24, next].map((key) => isOld(key, paused))).toEqual([false, true, true]);
  expect(isOld(byName, created)).toBe(true);
});

test("what was missed makes all old, but not what was asked for while typing", () => {
  expect(isOld(["schedules", "list", {}, "name"], { kind: "reset" })).toBe(true);
  expect(isOld(["schedules", "like", "x"], { kind: "reset" })).toBe(false);
  expect(isOld(["me"], { kind: "reset" })).toBe(false);
});

async function counted(queryKey: QueryKey, data: unknown, ticks: number): Promise<number> {
  const client = new QueryClient();
  let reads = 0;
  const observer = new QueryObserver(client, {
    queryKey,
    queryFn: () => {
      reads += 1;
      return data;
    },
  });
  const leave = observer.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(0);
  const rereading = new Rereading(client);
  reads = 0;
  for (let tick = 0; tick < ticks; tick += 1) {
    rereading.add(ended);
    // The stream also writes to the cache. That does not count as a fetch.
    client.setQueryData(queryKey, data);
    await vi.advanceTimersByTimeAsync(1000);
  }
  leave();
  rereading.stop();
  return reads;
}

test("a change every second is read every three seconds, and of long lists every fifteen", async () => {
  expect(await counted(["status"], {}, 31)).toBe(11);
  expect(await counted(["executions", "list"], { pages: [{}, {}] }, 31)).toBe(3);
  expect(await counted(["timeline", "load"], {}, 31)).toBe(3);
});
