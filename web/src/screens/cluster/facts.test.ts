import { describe, expect, test } from "vitest";
import type { Queue } from "@/api/cluster";
import type { Instance, Schedule } from "@/api/types";
import { backlogOf, isSkewed, serversOf, skewWords, standingOf, strandedOf } from "./facts";

function instance(parts: Partial<Instance>): Instance {
  return {
    instance_id: "a",
    hostname: "a",
    pid: 1,
    roles: ["worker"],
    version: "1.0",
    started_ts: "2026-01-01T00:00:00Z",
    last_heartbeat: "2026-01-01T00:00:00Z",
    heartbeat_age_seconds: 0,
    is_live: true,
    is_draining: false,
    leader_since: null,
    leads: [],
    capacity: 10,
    load: 0,
    queues: null,
    known_tasks: [],
    transports: null,
    lease_provider: null,
    clock_offset_seconds: 0,
    ...parts,
  };
}

function queue(parts: Partial<Queue>): Queue {
  return {
    name: "default",
    paused: false,
    depth: {},
    is_capped: false,
    oldest_ready_ts: null,
    sla_missed_count: 0,
    running_count: 0,
    is_running_capped: false,
    ...parts,
  };
}

function running(name: string, task: string, state: Schedule["state"] = "active") {
  return { schedule_id: name, name, state, target: { kind: "function" as const, name: task, args: {} } };
}

describe("a clock", () => {
  test("is worth a warning beyond a second, whichever way", () => {
    expect([1, 1.01, -1.01, null].map(isSkewed)).toEqual([false, true, true, false]);
  });

  test("is told by how far it is from the database's, and which way", () => {
    expect([0.0001, 0.012, -2.5, null].map(skewWords)).toEqual([
      "in step",
      "12 ms ahead",
      "2.5 s behind",
      "not measured",
    ]);
  });
});

test("a queue is served by live workers that name it or name none", () => {
  const found = serversOf("mail", [
    instance({ instance_id: "all" }),
    instance({ instance_id: "named", queues: ["mail"] }),
    instance({ instance_id: "other", queues: ["reports"] }),
    instance({ instance_id: "silent", is_live: false }),
    instance({ instance_id: "draining", is_draining: true }),
    instance({ instance_id: "scheduler", roles: ["scheduler"] }),
  ]);
  expect(found.map((each) => each.instance_id)).toEqual(["all", "named"]);
});

test("slots are counted over live workers alone", () => {
  const standing = standingOf([
    instance({ capacity: 10, load: 3 }),
    instance({ capacity: 5, load: 5, version: "1.1" }),
    instance({ capacity: 50, load: 50, is_live: false }),
    instance({ capacity: 7, roles: ["api"], clock_offset_seconds: -3 }),
  ]);
  expect(standing).toEqual({
    live: 3,
    silent: 1,
    workers: 2,
    slots: 15,
    busy: 8,
    skewed: 1,
    versions: [
      ["1.0", 2],
      ["1.1", 1],
    ],
  });
});

test("the backlog is that of all queues, and as old as the oldest", () => {
  const backlog = backlogOf([
    queue({ depth: { high: 1, low: 2 }, oldest_ready_ts: "2026-01-01T00:00:05.5Z", sla_missed_count: 1 }),
    queue({ depth: { medium: 4 }, oldest_ready_ts: "2026-01-01T00:00:05Z", paused: true, is_capped: true }),
  ]);
  expect(backlog).toEqual({
    waiting: 7,
    isCapped: true,
    late: 1,
    paused: 1,
    oldest: "2026-01-01T00:00:05Z",
  });
});

describe("a schedule is stranded", () => {
  const tasks = [
    { name: "known", worker_count: 1, is_active: true, is_system: false },
    { name: "alone", worker_count: 0, is_active: true, is_system: false },
    { name: "off", worker_count: 1, is_active: false, is_system: false },
    { name: "own", worker_count: 0, is_active: true, is_system: true },
  ];

  test("when its task has no worker, is switched off, or was never registered", () => {
    const schedules = [
      running("a", "known"),
      running("b", "off"),
      running("c", "alone"),
      running("d", "alone"),
      running("e", "never"),
    ];
    const found = strandedOf(schedules, tasks, true);
    expect(found.map(({ task, why, schedules: of }) => [task, why, of.map((each) => each.name)])).toEqual([
      ["alone", "no worker", ["c", "d"]],
      ["never", "unknown", ["e"]],
      ["off", "switched off", ["b"]],
    ]);
  });

  test("not by a task of the schedulers' own, which needs no worker", () => {
    expect(strandedOf([running("a", "own")], tasks, true)).toEqual([]);
  });

  test("only if it would run", () => {
    expect(strandedOf([running("a", "alone", "paused")], tasks, true)).toEqual([]);
  });

  test("by an unknown task only if all tasks are known", () => {
    expect(strandedOf([running("a", "never")], tasks, false)).toEqual([]);
  });
});
