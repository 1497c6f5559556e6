// A new schedule takes queue, timeout and retries from its task function, until the user changes them. Pure.

import type { TaskFunction } from "@/api/schedule-editing";
import { DEFAULTS } from "./definition";
import { isSame } from "./difference";
import type { Draft } from "./draft";
import { lengthOf } from "./duration";

type Taken = Pick<
  Draft,
  "queue" | "timeout" | "attempts" | "firstDelay" | "multiplier" | "mostDelay" | "hasRetryJitter"
>;
type Giving = Pick<TaskFunction, "queue" | "default_timeout_seconds" | "default_retry">;

/** Apply the settings of a newly chosen `task`. Fields that still have the values of `before` are updated. */
export function followTask(draft: Draft, before: Giving | null, task: Giving): Draft {
  const old = takenFrom(before);
  const names = Object.keys(old) as (keyof Taken)[];
  const changed = names.filter((name) => isSame(draft[name], old[name]));
  const taken = takenFrom(task);
  return { ...draft, ...Object.fromEntries(changed.map((name) => [name, taken[name]])) };
}

function takenFrom(task: Giving | null): Taken {
  const retry = task?.default_retry ?? DEFAULTS.retry;
  return {
    queue: task?.queue ?? DEFAULTS.queue,
    timeout: lengthOf(task?.default_timeout_seconds ?? DEFAULTS.timeout_seconds),
    attempts: String(retry.max_attempts),
    firstDelay: lengthOf(retry.initial_delay_seconds),
    multiplier: String(retry.multiplier),
    mostDelay: lengthOf(retry.max_delay_seconds),
    hasRetryJitter: retry.jitter,
  };
}
