// Whether the server answers, and since when it does not.

import { useSyncExternalStore } from "react";

let silentSince: Date | null = null;
const listeners = new Set<() => void>();

function become(since: Date | null): void {
  silentSince = since;
  for (const listener of listeners) listener();
}

/** An answer came, whatever it says. */
export function noteAnswer(): void {
  if (silentSince !== null) become(null);
}

/** A request got no answer. */
export function noteSilence(): void {
  if (silentSince === null) become(new Date());
}

/** By the reader's own clock; null: the server answers. */
export function useSilentSince(): Date | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => silentSince,
  );
}
