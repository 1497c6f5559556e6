import { type InfiniteData, QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { portionOf, ScheduleRows } from "./schedule-rows";
import type { ListedSchedule } from "./types";

const KEY = ["schedules", "list", {}, "name"];
const row = (number: number, next: string) =>
  ({ schedule_id: `id ${number}`, name: `name ${number}`, next_run_ts: next }) as ListedSchedule;

let client: QueryClient;
let asked: (readonly string[])[];
let rows: ScheduleRows;
let leave: () => void;

beforeEach(() => {
  vi.useFakeTimers();
  client = new QueryClient();
  const items = Array.from({ length: 120 }, (_, number) => row(number, "before"));
  client.setQueryData(KEY, { pages: [{ items, next_page_token: "" }], pageParams: [""] });
  const observer = new QueryObserver(client, {
    queryKey: KEY,
    queryFn: () => client.getQueryData(KEY),
    staleTime: Number.POSITIVE_INFINITY,
  });
  leave = observer.subscribe(() => {});
  asked = [];
  rows = new ScheduleRows(client, async (names) => {
    asked.push(names);
    return names.map((name) => row(Number(name.split(" ")[1]), "after"));
  });
});

afterEach(() => {
  rows.stop();
  leave();
  vi.useRealTimers();
});

const nextRuns = () =>
  client
    .getQueryData<InfiniteData<{ items: ListedSchedule[] }>>(KEY)
    ?.pages.flatMap((page) => page.items.map((each) => each.next_run_ts));

test("rows that changed are read together, by name, and put into their places", async () => {
  for (const id of ["id 1", "id 3", "id 1", "not on the page"]) rows.add(id);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toEqual([["name 1", "name 3"]]);
  expect(nextRuns()?.slice(0, 5)).toEqual(["before", "after", "before", "after", "before"]);
});

test("nothing is asked for rows that are not on the page", async () => {
  rows.add("not on the page");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toEqual([]);
});

test("many rows are read in portions, one after the other", async () => {
  for (let number = 0; number < 120; number += 1) rows.add(`id ${number}`);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked.map((names) => names.length)).toEqual([50]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.map((names) => names.length)).toEqual([50, 50, 20]);
  expect(new Set(nextRuns())).toEqual(new Set(["after"]));
});

test("long names make small portions, but never none", () => {
  expect(portionOf(Array.from({ length: 50 }, () => "x".repeat(126)))).toHaveLength(30);
  expect(portionOf(["ü".repeat(1000)])).toHaveLength(1);
});
