import { expect, test } from "vitest";
import { targetOf } from "@/kinds";
import { readSearch } from "@/routing/search";
import { filterOf, shape } from "./filters";
import { whenOf, whyFixed, zoneOf } from "./words";

const cron = { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin" } as const;

test("the zone is not told twice", () => {
  expect(whenOf({ trigger: cron, trigger_description: "At 02:00 (Europe/Berlin)" })).toBe("At 02:00");
  expect(whenOf({ trigger: cron, trigger_description: "At 02:00" })).toBe("At 02:00");
});

test("a single instant has no zone", () => {
  expect(zoneOf({ kind: "once", at: "2026-01-01T00:00:00Z" })).toBeNull();
});

test("an address is told without its scheme", () => {
  const target = {
    kind: "http",
    method: "POST",
    url: "https://agent.example/run",
    headers: {},
    body: null,
    expected_status: null,
  } as const;
  expect(targetOf(target)).toBe("POST agent.example/run");
});

test("what the definition switched off can't be switched on beside it", () => {
  expect(whyFixed({ active: false, state: "inactive", paused: false })).toMatch(/definition/);
  expect(whyFixed({ active: true, state: "paused", paused: true })).toBeNull();
});

test("a filter has what was asked for and nothing else", () => {
  expect(filterOf(readSearch(shape, "?state=paused&sort=-name&q=night&label=team:pay"))).toEqual({
    q: "night",
    state: ["paused"],
    label: ["team:pay"],
  });
  expect(filterOf(readSearch(shape, ""))).toEqual({});
});
