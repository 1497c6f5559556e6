// Tracks whether the server answers, and since when it does not.

import { useSyncExternalStore } from "react";

let silentSince: Date | null = null;
const listeners = new Set<() => void>();

function become(since: Date | null): void {
  silentSince = since;
  for (const listener of listeners) listener();
}

/** Record that the server answered, with success or with an error. */
export function noteAnswer(): void {
  if (silentSince !== null) become(null);
}

/** Record that a request got no answer. */
export function noteSilence(): void {
  if (silentSince === null) become(new Date());
}

/** Since when the server has not answered, by the browser's clock; null: it answers. */
export function useSilentSince(): Date | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => silentSince,
  );
}
