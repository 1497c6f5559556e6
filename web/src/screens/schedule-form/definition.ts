// A schedule's definition: the fields that its author writes, and their defaults. Pure functions.

import type { Definition } from "@/api/schedule-editing";
import type { Schedule } from "@/api/types";
import { isSame } from "./difference";

type Optional = Omit<Definition, "name" | "trigger" | "target">;

/** Default values. A test compares them with the server's. */
export const DEFAULTS: Required<Optional> = {
  description: "",
  active: true,
  priority: "medium",
  queue: "default",
  start_ts: null,
  end_ts: null,
  max_runs: null,
  timeout_seconds: 300,
  misfire: { policy: "fire_once", grace_seconds: 3600, max_catchup: 100 },
  overlap: { policy: "skip", max_instances: 1, max_queued: 1000 },
  retry: { max_attempts: 3, initial_delay_seconds: 1, multiplier: 2, max_delay_seconds: 30, jitter: true },
  delivery: "at_least_once",
  dst: { gap: "shift", repeat: "first" },
  labels: {},
  window: null,
  calendars: [],
  jitter_seconds: 0,
};

export const DEFINED = [
  "name",
  "description",
  "active",
  "priority",
  "queue",
  "trigger",
  "target",
  "start_ts",
  "end_ts",
  "max_runs",
  "timeout_seconds",
  "misfire",
  "overlap",
  "retry",
  "delivery",
  "dst",
  "labels",
  "window",
  "calendars",
  "jitter_seconds",
] as const satisfies readonly (keyof Definition)[];

/** The fields written by the author, without those maintained by Foliot. */
export function definitionOf(known: Definition | Schedule): Definition {
  return Object.fromEntries(DEFINED.map((name) => [name, known[name]])) as unknown as Definition;
}

/** A definition without the fields that have their default values. */
export function shortDefinitionOf(known: Definition | Schedule): Partial<Definition> {
  const told = DEFINED.filter(
    (name) => !(name in DEFAULTS) || !isSame(known[name], DEFAULTS[name as keyof Optional]),
  );
  return Object.fromEntries(told.map((name) => [name, known[name]]));
}
