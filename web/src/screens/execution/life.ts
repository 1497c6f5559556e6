// Moments in the life of an execution, and the time between them. Pure functions.

import type { Attempt } from "@/api/execution-list";
import { type Execution, isOpen } from "@/api/types";

export interface Moment {
  name: string;
  /** Null: not reached yet. */
  at: string | null;
  note: string;
  /** Seconds since the previous moment. Null: unknown, or not reached yet. */
  wait: number | null;
}

/** Microseconds since the epoch. `Date` keeps only milliseconds. */
export function microsOf(instant: string): number {
  const fraction = /\.(\d+)/.exec(instant)?.[1] ?? "";
  const whole = Date.parse(instant.replace(/\.\d+/, ""));
  return whole * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

export function secondsBetween(from: string, to: string): number {
  return Math.max(0, (microsOf(to) - microsOf(from)) / 1_000_000);
}

const SAME_S = 0.001;

const BEGINNINGS: Record<Execution["triggered_by"], string> = {
  scheduler: "Planned",
  backfill: "Planned",
  manual: "Asked for",
  api: "Asked for",
};

/** All moments that have passed, in order, and the next one. */
export function momentsOf(known: Execution, attempts: readonly Attempt[]): Moment[] {
  const moments: Omit<Moment, "wait">[] = [
    { name: BEGINNINGS[known.triggered_by], at: known.fire_ts, note: missedOf(known) },
  ];
  const add = (name: string, at: string | null, note = "") => moments.push({ name, at, note });
  const worker = (id: string | null) => (id === null ? "" : `by ${id}`);
  const first = attempts.length > 1 ? attempts[0] : undefined;
  const isFirst = first === undefined || first.started_ts === null;
  const isReadyAtOnce = known.ready_ts !== null && secondsBetween(known.created_ts, known.ready_ts) < SAME_S;

  if (known.status === "skipped") {
    add("Skipped", known.ended_ts ?? known.created_ts);
    return waitsOf(moments);
  }
  if (!isFirst || !isReadyAtOnce) {
    add("Decided", known.created_ts);
  }
  if (!isFirst) {
    add("First start", first.started_ts, worker(first.worker_id));
  }
  if (known.ready_ts !== null || isOpen(known.status)) {
    add(
      isFirst ? "Ready" : "Ready again",
      known.ready_ts,
      known.ready_ts === null ? "another run goes first" : "",
    );
  }
  // A worker starts an execution when it claims it, so this is one moment.
  const hasStarted = known.started_ts !== null && known.status !== "pending" && known.status !== "retrying";
  if (hasStarted || isOpen(known.status)) {
    const name = isFirst ? "Claimed, started" : `Attempt ${known.attempt}`;
    const next = isFirst ? "Start" : `Attempt ${known.attempt + 1}`;
    add(
      hasStarted ? name : next,
      hasStarted ? known.started_ts : null,
      hasStarted ? worker(known.worker_id) : "",
    );
  }
  add(isOpen(known.status) ? "End" : "Ended", isOpen(known.status) ? null : known.ended_ts);
  return waitsOf(moments);
}

function waitsOf(moments: readonly Omit<Moment, "wait">[]): Moment[] {
  return moments.map((moment, index) => {
    const before = index === 0 ? null : (moments[index - 1]?.at ?? null);
    const wait = before === null || moment.at === null ? null : secondsBetween(before, moment.at);
    return { ...moment, wait };
  });
}

function missedOf({ missed_count: missed }: Execution): string {
  return missed === 0 ? "" : `and ${missed} missed before`;
}

// --- attempts as bars --------------------------------------------------------------------------------------

export interface Bar {
  attempt: Attempt;
  /** Fractions of the whole time span, 0 to 1. */
  left: number;
  width: number;
  seconds: number | null;
}

const MIN_WIDTH = 0.004;

/** Attempts as bars on a common time axis: from the first start to the last end, or to now. */
export function barsOf(attempts: readonly Attempt[], now: Date): Bar[] {
  const present = now.toISOString();
  const spans = attempts.flatMap((attempt) => {
    if (attempt.started_ts === null) return [];
    const end = attempt.ended_ts ?? (isOpen(attempt.status) ? present : attempt.started_ts);
    return [
      {
        attempt,
        start: microsOf(attempt.started_ts),
        end: Math.max(microsOf(attempt.started_ts), microsOf(end)),
      },
    ];
  });
  const from = Math.min(...spans.map((span) => span.start));
  const whole = Math.max(1, Math.max(...spans.map((span) => span.end)) - from);
  return spans.map(({ attempt, start, end }) => {
    const width = Math.max(MIN_WIDTH, (end - start) / whole);
    return {
      attempt,
      left: Math.min((start - from) / whole, 1 - width),
      width,
      seconds: attempt.duration_seconds ?? (isOpen(attempt.status) ? (end - start) / 1_000_000 : null),
    };
  });
}
