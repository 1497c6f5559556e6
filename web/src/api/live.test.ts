import { expect, test } from "vitest";
import { withExecution, withStatus } from "./live";
import type { ExecutionTold } from "./stream";
import type { ClusterStatus, ListedSchedule } from "./types";

const row = {
  schedule_id: "s",
  last_status: "success",
  last_run_ts: "2026-03-01T02:00:00Z",
  last_execution_id: "e2",
  recent: [
    { execution_id: "e2", status: "success", fire_ts: "2026-03-01T02:00:00Z", duration_seconds: 1 },
    { execution_id: "e1", status: "failed", fire_ts: "2026-03-01T01:00:00Z", duration_seconds: 2 },
  ],
} as unknown as ListedSchedule;

function told(changes: Partial<ExecutionTold>): ExecutionTold {
  return {
    execution_id: "e3",
    schedule_id: "s",
    schedule_name: "nightly",
    status: "failed",
    attempt: 1,
    progress: null,
    fire_ts: "2026-03-01T03:00:00Z",
    started_ts: "2026-03-01T03:00:00.2Z",
    ended_ts: "2026-03-01T03:00:04Z",
    duration_seconds: 3.8,
    ...changes,
  };
}

test("an end becomes the last result, and the latest of the recent ones", () => {
  const changed = withExecution(row, told({}));
  expect(changed).toMatchObject({ last_status: "failed", last_execution_id: "e3" });
  expect(changed.recent?.map((each) => each.execution_id)).toEqual(["e3", "e2", "e1"]);
});

test("one that is known changes in its place", () => {
  const changed = withExecution(
    row,
    told({
      execution_id: "e1",
      status: "success",
      fire_ts: "2026-03-01T01:00:00Z",
      started_ts: "2026-03-01T01:00:00Z",
    }),
  );
  expect(changed.recent?.map((each) => each.status)).toEqual(["success", "success"]);
});

test("an end that comes late does not hide a later one", () => {
  const late = told({ fire_ts: "2026-03-01T00:00:00Z", started_ts: "2026-03-01T00:00:00Z" });
  expect(withExecution(row, late).last_execution_id).toBe("e2");
});

test("what still runs, and what was skipped, is no result", () => {
  expect(withExecution(row, told({ status: "running" })).last_status).toBe("success");
  expect(withExecution(row, told({ status: "skipped" })).last_status).toBe("success");
});

test("no more than twenty recent ones are kept", () => {
  const full = Array.from({ length: 20 }, (_, n) => ({
    execution_id: `f${n}`,
    status: "success" as const,
    fire_ts: new Date(Date.UTC(2026, 1, 28, 20 - n)).toISOString(),
    duration_seconds: 1,
  }));
  expect(withExecution({ ...row, recent: full }, told({})).recent).toHaveLength(20);
});

test("counts that the server could not tell leave the known ones", () => {
  const status = { executions: { by_status: { running: 3 } } } as unknown as ClusterStatus;
  expect(withStatus(status, { counts: null, leaders: [] })).toBe(status);
  expect(withStatus(status, { counts: { running: 1 }, leaders: [] }).executions.by_status).toEqual({
    running: 1,
  });
});
