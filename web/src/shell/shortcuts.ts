// Keyboard shortcuts outside of form fields. Single-letter shortcuts can be switched off, because speech
// input and users with tremor trigger them by accident (WCAG 2.1.4).

import { isOneOf, kept } from "@/settings/kept";
import { PLACES } from "./places";

const SWITCH = ["on", "off"] as const;
export const singleKeys = kept<(typeof SWITCH)[number]>("single-keys", "on", isOneOf(SWITCH));

/** The key that opens a screen after G: the first letter of the screen's name. */
export function letterOf(place: { name: string }): string {
  return place.name.charAt(0).toLowerCase();
}

/** How long after G the second letter may follow. */
export const PREFIX_MS = 1500;

export type Meaning =
  | { kind: "help" }
  /** Focus the filter field of this screen's list. */
  | { kind: "filter" }
  /** A second letter must follow. */
  | { kind: "prefix" }
  | { kind: "go"; path: string };

interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** The meaning of a key press; null: none. `isAfterPrefix`: G was pressed just before. */
export function meaningOf(pressed: Pressed, isAfterPrefix: boolean): Meaning | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  if (isAfterPrefix) {
    const place = PLACES.find((each) => letterOf(each) === pressed.key.toLowerCase());
    return place === undefined ? null : { kind: "go", path: place.path };
  }
  switch (pressed.key) {
    case "?":
      return { kind: "help" };
    case "/":
      return { kind: "filter" };
    case "g":
    case "G":
      return { kind: "prefix" };
    default:
      return null;
  }
}

const listeners = new Set<() => void>();
let isShown = false;

/** Whether the list of shortcuts is shown. */
export const shortcutList = {
  get: () => isShown,
  show(wanted: boolean): void {
    isShown = wanted;
    for (const listener of listeners) listener();
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
