// What this browser remembers of its reader's taste. Nothing of it is needed for a link to mean the same to
// somebody else: that is in the address.

import { useSyncExternalStore } from "react";

export interface Kept<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

/** A value that outlives the page; `allowed` says whether what was found is still one. */
export function kept<T>(name: string, initial: T, allowed: (value: unknown) => value is T): Kept<T> {
  const key = `foliot.${name}`;
  const listeners = new Set<() => void>();
  let value = read();

  function read(): T {
    try {
      const found: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
      return allowed(found) ? found : initial;
    } catch {
      return initial; // storage may be forbidden, or hold anything
    }
  }

  function tell(): void {
    for (const listener of listeners) listener();
  }

  if (typeof window !== "undefined") {
    // Another tab has changed it.
    window.addEventListener("storage", (event) => {
      if (event.key === key) {
        value = read();
        tell();
      }
    });
  }

  return {
    get: () => value,
    set(wanted) {
      value = wanted;
      try {
        localStorage.setItem(key, JSON.stringify(wanted));
      } catch {
        // Then it lasts as long as the page.
      }
      tell();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useKept<T>(store: Kept<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** For `allowed`. */
export function isOneOf<T extends string>(words: readonly T[]): (value: unknown) => value is T {
  return (value): value is T => words.some((each) => each === value);
}
