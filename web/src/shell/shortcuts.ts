// What keys mean that are pressed outside of fields. Single letters can be switched off: speech input and
// unsteady hands press them unmeant (WCAG 2.1.4).

import { isOneOf, kept } from "@/settings/kept";
import { PLACES } from "./places";

const SWITCH = ["on", "off"] as const;
export const singleKeys = kept<(typeof SWITCH)[number]>("single-keys", "on", isOneOf(SWITCH));

/** The key that goes to a screen, after G: the first letter of its name. */
export function letterOf(place: { name: string }): string {
  return place.name.charAt(0).toLowerCase();
}

/** How long after G a letter still belongs to it. */
export const PREFIX_MS = 1500;

export type Meaning =
  | { kind: "help" }
  /** To the field that filters the list of this screen. */
  | { kind: "filter" }
  /** Another letter is to come. */
  | { kind: "prefix" }
  | { kind: "go"; path: string };

interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** Null: nothing. `isAfterPrefix`: G was pressed just before. */
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

/** Whether the list of keys is shown. */
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
