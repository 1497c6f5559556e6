// The present, by the cluster's clock: the reader's own may be wrong, and a countdown that is wrong by minutes
// would be worse than none.

import { useSyncExternalStore } from "react";

const WORTH_CORRECTING_MS = 1000;

let offset = 0;

/** How far this machine's clock is behind the cluster's; answers take time, so small differences are none. */
export function observeServerTime(told: Date, sentAt: number, receivedAt: number): void {
  const measured = told.getTime() - (sentAt + receivedAt) / 2;
  offset = Math.abs(measured) < WORTH_CORRECTING_MS ? 0 : measured;
}

export function presently(): Date {
  return new Date(Date.now() + offset);
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let second = presently();

function tick(): void {
  second = presently();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    second = presently();
    timer = setInterval(tick, 1000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The present, anew every second: all of a page change at the same moment. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => second);
}
