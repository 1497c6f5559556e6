// The current location. The URL is its only source, and holds all state that is worth sharing.

import { useSyncExternalStore } from "react";
import { base } from "./base";

export interface Place {
  readonly path: string;
  /** The query string with its question mark, or empty. */
  readonly search: string;
}

const listeners = new Set<() => void>();
let current: Place = read();

function read(): Place {
  if (typeof window === "undefined") {
    return { path: "/", search: "" };
  }
  const { pathname, search } = window.location;
  return { path: pathname.startsWith(`${base}/`) ? pathname.slice(base.length) : "/", search };
}

function changed(): void {
  current = read();
  for (const listener of listeners) listener();
}

if (typeof window !== "undefined") {
  window.addEventListener("popstate", changed);
}

/** Go to an address of this application, such as `/schedules`. `replace` adds no entry to the history. */
export function navigate(address: string, { replace = false } = {}): void {
  const from = current;
  if (replace) {
    window.history.replaceState(null, "", base + address);
  } else {
    window.history.pushState(null, "", base + address);
  }
  changed();
  if (current.path !== from.path && !replace && !isWithin(current.path, from.path)) {
    window.scrollTo(0, 0);
  }
}

/** Whether both paths belong to one screen. Opening a panel over a list adds a path segment, and must not
 * scroll the list. */
function isWithin(a: string, b: string): boolean {
  return a.split("/")[1] === b.split("/")[1] && a !== "/" && b !== "/";
}

export function useLocation(): Place {
  return useSyncExternalStore(subscribe, () => current);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
