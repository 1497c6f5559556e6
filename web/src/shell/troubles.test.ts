import { expect, test } from "vitest";
import type { ClusterStatus } from "@/api/types";
import { troublesOf } from "./troubles";

const NOW = "2026-03-01T12:00:00Z";
const leader = { shard: 0, instance_id: "a", epoch: 1, heartbeat_age_seconds: 0, is_fresh: true };
const queue = {
  name: "default",
  paused: false,
  depth: { high: 0, medium: 4, low: 0 },
  is_capped: false,
  oldest_ready_ts: "2026-03-01T11:58:00Z",
  sla_missed_count: 0,
  running_count: 0,
  is_running_capped: false,
};

function texts(parts: Partial<ClusterStatus>): string[] {
  const status = {
    now: NOW,
    leaders: [leader],
    queues: [queue],
    overdue: { count: 0, is_capped: false, oldest: null },
    unknown_tasks: [],
    workers: { taking_work: 1, draining: 0 },
    stale: false,
    ...parts,
  } as unknown as ClusterStatus;
  return troublesOf(status).map((trouble) => trouble.text);
}

test("work that waits for a moment is no trouble", () => {
  expect(texts({})).toEqual([]);
});

test("a scheduler that nobody leads is named", () => {
  expect(texts({ leaders: [] })).toEqual(["No scheduler leads: no schedule fires."]);
  expect(texts({ leaders: [{ ...leader, is_fresh: false }] })).toEqual([
    "No scheduler leads: no schedule fires.",
  ]);
  expect(texts({ leaders: [leader, { ...leader, shard: 1, instance_id: null, is_fresh: false }] })).toEqual([
    "1 of 2 shards have no leader: their schedules do not fire.",
  ]);
});

test("no worker at all hides what follows from it", () => {
  const task = { task: "t", schedule_count: 1, schedule_name: "s" };
  const parts = { unknown_tasks: [task] };
  expect(texts({ ...parts, workers: { taking_work: 0, draining: 0 } })).toEqual([
    "There is no worker: no execution starts.",
  ]);
  expect(texts({ ...parts, workers: { taking_work: 0, draining: 1 } })).toEqual([
    "The only worker is draining: no execution starts.",
  ]);
});

test("queues and tasks without a worker are named, the first three of each", () => {
  const unserved = (name: string) => ({ queue: name, waiting: 2, oldest_ready_ts: NOW });
  expect(texts({ unserved_queues: ["a", "b", "c", "d", "e"].map(unserved) })).toEqual([
    "No worker serves the queue a: 2 executions wait in it.",
    "No worker serves the queue b: 2 executions wait in it.",
    "No worker serves the queue c: 2 executions wait in it.",
    "2 more queues with waiting work have no worker.",
  ]);
  expect(texts({ unknown_tasks: [{ task: "report", schedule_count: 2, schedule_name: "nightly" }] })).toEqual(
    ["No worker knows the task report: 2 schedules, nightly among them, can't run."],
  );
});

test("a paused queue is named while something waits in it", () => {
  expect(texts({ queues: [{ ...queue, paused: true, sla_missed_count: 4 }] })).toEqual([
    "The queue default is paused: 4 executions wait in it.",
  ]);
  expect(texts({ queues: [{ ...queue, paused: true, depth: { high: 0, medium: 0, low: 0 } }] })).toEqual([]);
});

test("a promise is missed, and schedules are late, when the server says so", () => {
  expect(texts({ queues: [{ ...queue, sla_missed_count: 3 }] })).toEqual([
    "Queue default: 3 should have started by now, the oldest for 2 min.",
  ]);
  const oldest = {
    schedule_id: "s",
    name: "nightly",
    next_fire_ts: NOW,
    next_run_ts: "2026-03-01T11:00:00Z",
  };
  expect(texts({ overdue: { count: 2, is_capped: false, oldest } })).toEqual([
    "2 schedules are late: nightly by 1 h.",
  ]);
});

test("what stops work comes before what is late", () => {
  const [first] = texts({
    queues: [{ ...queue, paused: true }],
    workers: { taking_work: 0, draining: 2 },
  });
  expect(first).toBe("All 2 workers are draining: no execution starts.");
});
