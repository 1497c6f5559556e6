// Derives from the cluster status what stops or delays work. Pure functions.

import type { ClusterStatus } from "@/api/types";
import { count, span } from "@/time/format";

export interface Trouble {
  /** Stays the same while the trouble is the same. */
  key: string;
  /** bad: executions do not start, or schedules do not fire. warn: they are late, or paused on purpose. */
  tone: "bad" | "warn";
  text: string;
  /** The page with more information. */
  href: string;
  link: string;
}

/** How many troubles of one kind are listed one by one. */
const MAX_NAMED = 3;

export const DATABASE_AWAY: Trouble = {
  key: "database",
  tone: "bad",
  text: "The server can't reach its database: nothing can be read or changed here.",
  href: "/cluster",
  link: "Cluster",
};

/** All troubles, worst first. Empty: everything that is due gets done. */
export function troublesOf(status: ClusterStatus): Trouble[] {
  const troubles = [
    ...staleness(status),
    ...leadership(status),
    ...workers(status),
    ...pauses(status),
    ...promises(status),
    ...lateness(status),
  ];
  return troubles.sort((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"));
}

function staleness(status: ClusterStatus): Trouble[] {
  return status.stale
    ? [
        {
          key: "stale",
          tone: "bad",
          text: "The primary database can't be reached. This is what a replica knows, and nothing can be changed.",
          href: "/cluster",
          link: "Cluster",
        },
      ]
    : [];
}

function leadership({ leaders }: ClusterStatus): Trouble[] {
  const missing = leaders.filter((leader) => !leader.is_fresh || leader.instance_id === null);
  if (leaders.length > 0 && missing.length === 0) {
    return [];
  }
  const text =
    missing.length === leaders.length
      ? "No scheduler leads: no schedule fires."
      : `${missing.length} of ${leaders.length} shards have no leader: their schedules do not fire.`;
  return [{ key: "leader", tone: "bad", text, href: "/cluster", link: "Cluster" }];
}

function workers(status: ClusterStatus): Trouble[] {
  const { taking_work: taking, draining } = status.workers;
  if (taking === 0) {
    const why = draining === 0 ? "There is no worker" : `${theWorkers(draining)} draining`;
    return [
      {
        key: "workers",
        tone: "bad",
        text: `${why}: no execution starts.`,
        href: "/cluster/workers",
        link: "Workers",
      },
    ];
  }
  const queues = status.unserved_queues ?? [];
  const tasks = status.unknown_tasks;
  return [
    ...queues.slice(0, MAX_NAMED).map(
      ({ queue, waiting }): Trouble => ({
        key: `queue ${queue}`,
        tone: "bad",
        text: `No worker serves the queue ${queue}: ${executions(waiting)} in it.`,
        href: "/cluster/queues",
        link: "Queues",
      }),
    ),
    ...rest(queues.length, "queues with waiting work have no worker", "/cluster/queues", "Queues"),
    ...tasks.slice(0, MAX_NAMED).map(
      ({ task, schedule_count: schedules, schedule_name: name }): Trouble => ({
        key: `task ${task}`,
        tone: "bad",
        text: `No worker knows the task ${task}: ${named(schedules, name)} can't run.`,
        href: "/cluster/tasks",
        link: "Tasks",
      }),
    ),
    ...rest(tasks.length, "tasks of schedules are known to no worker", "/cluster/tasks", "Tasks"),
  ];
}

function theWorkers(draining: number): string {
  return draining === 1 ? "The only worker is" : `All ${draining} workers are`;
}

function pauses({ queues }: ClusterStatus): Trouble[] {
  const paused = queues.filter((queue) => queue.paused && depthOf(queue) > 0);
  return [
    ...paused.slice(0, MAX_NAMED).map(
      (queue): Trouble => ({
        key: `paused ${queue.name}`,
        tone: "warn",
        text: `The queue ${queue.name} is paused: ${executions(depthOf(queue), queue.is_capped)} in it.`,
        href: "/cluster/queues",
        link: "Queues",
      }),
    ),
    ...rest(paused.length, "queues with waiting work are paused", "/cluster/queues", "Queues"),
  ];
}

/** Queues that are not paused, but whose executions wait longer than their priority allows. */
function promises({ queues, now }: ClusterStatus): Trouble[] {
  const missed = queues.filter((queue) => !queue.paused && queue.sla_missed_count > 0);
  return [
    ...missed.slice(0, MAX_NAMED).map((queue): Trouble => {
      const oldest =
        queue.oldest_ready_ts === null ? null : Date.parse(now) - Date.parse(queue.oldest_ready_ts);
      const since = oldest === null ? "" : `, the oldest for ${span(oldest)}`;
      const number = count(queue.sla_missed_count, queue.is_capped);
      return {
        key: `promise ${queue.name}`,
        tone: "warn",
        text: `Queue ${queue.name}: ${number} should have started by now${since}.`,
        href: "/cluster/queues",
        link: "Queues",
      };
    }),
    ...rest(missed.length, "queues are behind their promise", "/cluster/queues", "Queues"),
  ];
}

function lateness({ overdue, now }: ClusterStatus): Trouble[] {
  const { oldest } = overdue;
  if (overdue.count === 0 || oldest === null) {
    return [];
  }
  const since = span(Date.parse(now) - Date.parse(oldest.next_run_ts));
  return [
    {
      key: "late",
      tone: "warn",
      text:
        overdue.count === 1
          ? `The schedule ${oldest.name} is late by ${since}.`
          : `${count(overdue.count, overdue.is_capped)} schedules are late: ${oldest.name} by ${since}.`,
      href: "/schedules?state=active&sort=next_run_ts",
      link: "Schedules",
    },
  ];
}

/** One trouble that counts those beyond MAX_NAMED. */
function rest(total: number, words: string, href: string, link: string): Trouble[] {
  return total > MAX_NAMED
    ? [{ key: words, tone: "bad", text: `${total - MAX_NAMED} more ${words}.`, href, link }]
    : [];
}

function depthOf({ depth }: ClusterStatus["queues"][number]): number {
  return Object.values(depth).reduce((total, each) => total + each, 0);
}

function executions(number: number, isCapped = false): string {
  return number === 1 ? "1 execution waits" : `${count(number, isCapped)} executions wait`;
}

function named(schedules: number, one: string): string {
  return schedules === 1 ? `the schedule ${one}` : `${count(schedules)} schedules, ${one} among them,`;
}
