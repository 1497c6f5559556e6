// A schedule's policies as sentences. Pure functions.

import type { Definition } from "@/api/schedule-editing";
import { duration } from "@/time/format";
import { ALL_DAYS, ALL_HOURS } from "./draft";

const DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const DAY = 86_400;

/** A duration as text. Whole days are given in days. */
export function lengthWords(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds >= DAY && seconds % DAY === 0) {
    return seconds === DAY ? "1 day" : `${seconds / DAY} days`;
  }
  return duration(seconds);
}

export function misfireWords({ policy, grace_seconds, max_catchup }: Definition["misfire"]): string {
  const late = `A time that is late by more than ${lengthWords(grace_seconds)} never runs.`;
  switch (policy) {
    case "fire_once":
      return `${late} If several were missed, they run once, together.`;
    case "fire_all":
      return `${late} If several were missed, each of them runs, at most the latest ${max_catchup}.`;
    case "skip":
      return "A time that is late by more than 10 s is skipped.";
  }
}

export function overlapWords({
  policy,
  max_instances,
}: Pick<Definition["overlap"], "policy" | "max_instances">): string {
  if (policy === "allow") {
    return "Runs may go on beside each other, as many as are due.";
  }
  const open = max_instances === 1 ? "While a run goes on" : `While ${max_instances} runs go on`;
  switch (policy) {
    case "skip":
      return `${open}, a time that is due is skipped.`;
    case "queue":
      return `${open}, a time that is due waits for its turn.`;
    case "cancel_running":
      return `${open}, a time that is due cancels what runs, and takes its place.`;
  }
}

export function retryWords(retry: Definition["retry"]): string {
  if (retry.max_attempts === 1) {
    return "A failed attempt is not tried again.";
  }
  const first = lengthWords(retry.initial_delay_seconds);
  const growth =
    retry.multiplier === 1
      ? `after ${first} each`
      : `after ${first}, then ${retry.multiplier} times as long each time, at most ${lengthWords(retry.max_delay_seconds)}`;
  const jitter = retry.jitter ? ", a little at random" : "";
  return `At most ${retry.max_attempts} attempts: ${growth}${jitter}.`;
}

export function deliveryWords(delivery: Definition["delivery"]): string {
  return delivery === "at_least_once"
    ? "If a worker is lost in the middle of a run, it runs again: at least once."
    : "If a worker is lost in the middle of a run, it does not run again: at most once.";
}

export function dstWords({ gap, repeat }: Definition["dst"]): string {
  const skipped =
    gap === "shift"
      ? "A time that clocks leave out runs right after the gap."
      : "A time that clocks leave out is skipped that day.";
  const twice = {
    first: "One that they show twice runs the first time.",
    second: "One that they show twice runs the second time.",
    both: "One that they show twice runs both times.",
  }[repeat];
  return `${skipped} ${twice}`;
}

/** "Monday to Friday, Sunday". */
export function daysWords(days: readonly number[]): string {
  if (ALL_DAYS.every((day) => days.includes(day))) return "every day";
  return runsOf(days)
    .map(([first, last]) => {
      const name = (day: number) => DAY_NAMES[day - 1] ?? "";
      return first === last ? name(first) : `${name(first)} to ${name(last)}`;
    })
    .join(", ");
}

/** "09:00–12:00, 20:00–21:00". */
export function hoursWords(hours: readonly number[]): string {
  if (ALL_HOURS.every((hour) => hours.includes(hour))) return "at any hour";
  const two = (hour: number) => `${String(hour).padStart(2, "0")}:00`;
  return runsOf(hours)
    .map(([first, last]) => `${two(first)}–${two(last + 1)}`)
    .join(", ");
}

export function windowWords(window: Definition["window"]): string {
  if (window === null) return "At any time.";
  return `Only ${daysWords(window.days_of_week)}, ${hoursWords(window.hours_of_day)} (${window.timezone}).`;
}

function runsOf(numbers: readonly number[]): (readonly [number, number])[] {
  const runs: [number, number][] = [];
  for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run !== undefined && run[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}
