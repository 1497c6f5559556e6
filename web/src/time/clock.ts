// The current time by the cluster's clock. The browser's clock may be wrong, and a countdown that is wrong by
// minutes is worse than none.

import { useSyncExternalStore } from "react";

const WORTH_CORRECTING_MS = 1000;

let offset = 0;

/** Measure how far this machine's clock is behind the cluster's. Differences under WORTH_CORRECTING_MS count
 * as zero, because responses take time. */
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

/** The current time, updated every second. All components on the page update at the same moment. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => second);
}
