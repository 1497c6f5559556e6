import { describe, expect, test } from "vitest";
import type { Attempt } from "@/api/execution-list";
import type { Execution } from "@/api/types";
import { barsOf, microsOf, momentsOf } from "./life";
import { lateness, outcomeOf, progressOf, whyNotCancel, whyNotRetry } from "./words";

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();

function execution(parts: Partial<Execution>): Execution {
  return {
    triggered_by: "scheduler",
    triggered_by_user: null,
    fire_ts: at(0),
    created_ts: at(1),
    ready_ts: at(1),
    started_ts: null,
    ended_ts: null,
    status: "pending",
    attempt: 0,
    missed_count: 0,
    worker_id: null,
    reason: null,
    error: null,
    result: null,
    progress: null,
    cancel_requested: false,
    ...parts,
  } as Execution;
}

function attempt(parts: Partial<Attempt>): Attempt {
  return {
    attempt: 1,
    status: "failed",
    worker_id: "w",
    started_ts: at(2),
    ended_ts: at(4),
    duration_seconds: 2,
    error: null,
    traceback: null,
    ...parts,
  };
}

const told = (known: Execution, attempts: readonly Attempt[] = []) =>
  momentsOf(known, attempts).map(({ name, wait }) => (wait === null ? name : `${name} +${wait}`));

describe("the life of an execution", () => {
  test("that went well goes from its time to its end", () => {
    const known = execution({ status: "success", attempt: 1, started_ts: at(3), ended_ts: at(10) });
    expect(told(known)).toEqual(["Planned", "Ready +1", "Claimed, started +2", "Ended +7"]);
  });

  test("that was tried again tells its first start, and the last attempt's", () => {
    const known = execution({
      status: "failed",
      attempt: 2,
      ready_ts: at(5),
      started_ts: at(6),
      ended_ts: at(8),
    });
    const attempts = [attempt({}), attempt({ attempt: 2, started_ts: at(6), ended_ts: at(8) })];
    expect(told(known, attempts)).toEqual([
      "Planned",
      "Decided +1",
      "First start +1",
      "Ready again +3",
      "Attempt 2 +1",
      "Ended +2",
    ]);
  });

  test("that waits for another run is not ready yet", () => {
    const moments = momentsOf(execution({ ready_ts: null }), []);
    expect(moments.map((moment) => moment.name)).toEqual(["Planned", "Decided", "Ready", "Start", "End"]);
    expect(moments[2]).toMatchObject({ at: null, note: "another run goes first" });
  });

  test("that was skipped ends when that was decided", () => {
    const known = execution({ status: "skipped", ready_ts: null, reason: "overlap" });
    expect(told(known)).toEqual(["Planned", "Skipped +1"]);
  });

  test("that was asked for was not planned", () => {
    expect(told(execution({ triggered_by: "manual" }))[0]).toBe("Asked for");
  });
});

test("instants are told apart by microseconds", () => {
  expect(microsOf("2026-01-01T00:00:00.000123Z") - microsOf("2026-01-01T00:00:00Z")).toBe(123);
  expect(microsOf("2026-01-01T01:00:00.5+01:00") - microsOf("2026-01-01T00:00:00Z")).toBe(500_000);
});

test("attempts stand where they were between the first start and the last end", () => {
  const bars = barsOf(
    [attempt({}), attempt({ attempt: 2, started_ts: at(8), ended_ts: at(12) })],
    new Date(at(99)),
  );
  expect(bars.map(({ left, width }) => [left, width])).toEqual([
    [0, 0.2],
    [0.6, 0.4],
  ]);
});

test("an attempt under way reaches to now", () => {
  const open = attempt({ status: "running", ended_ts: null, duration_seconds: null });
  expect(barsOf([open], new Date(at(12)))[0]).toMatchObject({ left: 0, width: 1, seconds: 10 });
});

test("an attempt of no length is still seen, within the whole", () => {
  const [, last] = barsOf(
    [attempt({}), attempt({ attempt: 2, started_ts: at(4), ended_ts: at(4) })],
    new Date(),
  );
  expect(last?.width).toBeGreaterThan(0);
  expect((last?.left ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(1);
});

test("the outcome is the first line of the error, else why, else the result", () => {
  expect(outcomeOf(execution({ status: "failed", error: "Boom: no\nmore" }))).toBe("Boom: no");
  expect(outcomeOf(execution({ status: "skipped", reason: "overlap" }))).toMatch(/earlier run/);
  expect(outcomeOf(execution({ status: "success", result: { rows: 2 } }))).toBe('{"rows":2}');
  expect(outcomeOf(execution({ status: "success", result: null }))).toBe("");
});

test("progress may be anything that its code told", () => {
  expect(progressOf({ progress: { fraction: 7, text: 1 } })).toEqual({ fraction: 1, text: "" });
  expect(progressOf({ progress: { fraction: "half" } })).toEqual({ fraction: null, text: "" });
  expect(progressOf({ progress: null })).toBeNull();
});

test("only a first attempt tells how late the start was", () => {
  expect(lateness(execution({ started_ts: at(3), attempt: 1 }))).toBe(3);
  expect(lateness(execution({ started_ts: at(3), attempt: 2 }))).toBeNull();
});

test("what can't be done says why", () => {
  expect(whyNotRetry({ status: "running" })).toMatch(/not ended/);
  expect(whyNotRetry({ status: "timeout" })).toBeNull();
  expect(whyNotCancel({ status: "success", cancel_requested: false })).toMatch(/ended/);
  expect(whyNotCancel({ status: "running", cancel_requested: true })).toMatch(/being cancelled/);
  expect(whyNotCancel({ status: "retrying", cancel_requested: false })).toBeNull();
});
