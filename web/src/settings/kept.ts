// User preferences in the browser's local storage. State that a shared link needs is in the address instead.

import { useSyncExternalStore } from "react";

export interface Kept<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

/** Create a stored preference. `initial` is used if the stored value is missing or not `allowed`. */
export function kept<T>(name: string, initial: T, allowed: (value: unknown) => value is T): Kept<T> {
  const key = `foliot.${name}`;
  const listeners = new Set<() => void>();
  let value = read();

  function read(): T {
    try {
      const found: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
      return allowed(found) ? found : initial;
    } catch {
      return initial; // storage may be blocked, or contain anything
    }
  }

  function tell(): void {
    for (const listener of listeners) listener();
  }

  if (typeof window !== "undefined") {
    // Another tab changed the value.
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
        // Storage is blocked: the value lasts until the page is closed.
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

/** Make an `allowed` check: the value is one of these words. */
export function isOneOf<T extends string>(words: readonly T[]): (value: unknown) => value is T {
  return (value): value is T => words.some((each) => each === value);
}
