// Facts derived from what instances, queues and tasks report. Pure functions.

import type { Leader, Priority, Queue, Task } from "@/api/cluster";
import { type Instance, isFunction, type Schedule } from "@/api/types";
import { duration } from "@/time/format";

/** Clock difference from which to warn. Foliot takes times from the database's clock, but logs do not. */
export const MAX_SKEW_SECONDS = 1;

export const PRIORITIES = ["high", "medium", "low"] as const satisfies readonly Priority[];

/** Within how many seconds a ready execution should start. */
export const START_WITHIN_SECONDS: Record<Priority, number> = { high: 1, medium: 5, low: 30 };

export function isSkewed(offset: number | null): boolean {
  return offset !== null && Math.abs(offset) > MAX_SKEW_SECONDS;
}

/** The difference between a clock and the database's, in words. `offset` is in seconds. */
export function skewWords(offset: number | null): string {
  if (offset === null) return "not measured";
  const size = Math.abs(offset);
  if (size < 0.0005) return "in step";
  return `${duration(size)} ${offset > 0 ? "ahead" : "behind"}`;
}

export function isWorker(instance: Instance): boolean {
  return instance.roles.includes("worker");
}

/** The live workers that take work from a queue. Draining workers take none. */
export function serversOf(queue: string, instances: readonly Instance[]): Instance[] {
  return instances.filter(
    (each) =>
      each.is_live &&
      !each.is_draining &&
      isWorker(each) &&
      (each.queues === null || each.queues.includes(queue)),
  );
}

/** The workers that can run a task function. */
export function workersWith(task: string, instances: readonly Instance[]): Instance[] {
  return instances.filter((each) => each.known_tasks?.includes(task) ?? false);
}

export function waitingIn(queue: Queue): number {
  return PRIORITIES.reduce((sum, priority) => sum + (queue.depth[priority] ?? 0), 0);
}

export interface Stranded {
  task: string;
  why: "unknown" | "no worker" | "switched off";
  schedules: readonly Pick<Schedule, "schedule_id" | "name">[];
}

type Running = Pick<Schedule, "schedule_id" | "name" | "target" | "state">;

/** Task functions that active schedules use, but no worker would run; sorted by name, each with its
 * schedules. `isAll`: `tasks` is complete. If it is not, a missing task is not reported. */
export function strandedOf(
  schedules: readonly Running[],
  tasks: readonly Pick<Task, "name" | "worker_count" | "is_active" | "is_system">[],
  isAll: boolean,
): Stranded[] {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const found = new Map<string, { why: Stranded["why"]; schedules: Running[] }>();
  for (const schedule of schedules) {
    const { target } = schedule;
    if (!isFunction(target) || schedule.state !== "active") continue;
    const task = byName.get(target.name);
    const why =
      task === undefined
        ? isAll
          ? "unknown"
          : null
        : !task.is_active
          ? "switched off"
          : task.worker_count === 0 && !task.is_system
            ? "no worker"
            : null;
    if (why === null) continue;
    const known = found.get(target.name);
    if (known) known.schedules.push(schedule);
    else found.set(target.name, { why, schedules: [schedule] });
  }
  return [...found].map(([task, rest]) => ({ task, ...rest })).sort((a, b) => a.task.localeCompare(b.task));
}

export interface Standing {
  live: number;
  silent: number;
  /** Total slots of the live workers. */
  slots: number;
  busy: number;
  workers: number;
  /** Versions of the live instances, each with the number of instances. */
  versions: readonly (readonly [version: string, count: number])[];
  skewed: number;
}

export function standingOf(instances: readonly Instance[]): Standing {
  const live = instances.filter((each) => each.is_live);
  const workers = live.filter(isWorker);
  const versions = new Map<string, number>();
  for (const { version } of live) versions.set(version, (versions.get(version) ?? 0) + 1);
  return {
    live: live.length,
    silent: instances.length - live.length,
    slots: sum(workers.map((each) => each.capacity)),
    busy: sum(workers.map((each) => each.load)),
    workers: workers.length,
    versions: [...versions].sort(([a], [b]) => a.localeCompare(b)),
    skewed: live.filter((each) => isSkewed(each.clock_offset_seconds)).length,
  };
}

export function isLed(leader: Leader): boolean {
  return leader.is_fresh && leader.instance_id !== null;
}

export interface Backlog {
  waiting: number;
  isCapped: boolean;
  late: number;
  paused: number;
  oldest: string | null;
}

export function backlogOf(queues: readonly Queue[]): Backlog {
  const waitingSince = queues.flatMap((queue) => queue.oldest_ready_ts ?? []).sort(byInstant);
  return {
    waiting: sum(queues.map(waitingIn)),
    isCapped: queues.some((queue) => queue.is_capped),
    late: sum(queues.map((queue) => queue.sla_missed_count)),
    paused: queues.filter((queue) => queue.paused).length,
    oldest: waitingSince[0] ?? null,
  };
}

function byInstant(a: string, b: string): number {
  return Date.parse(a) - Date.parse(b);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
