import { useSyncExternalStore } from "react";
import { isOneOf, kept, useKept } from "./kept";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const theme = kept<Theme>("theme", "system", isOneOf(THEMES));

const listeners = new Set<() => void>();

function apply(): void {
  const isDark = theme.get() === "dark" || (theme.get() === "system" && systemIsDark().matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  for (const listener of listeners) listener();
}

function systemIsDark(): MediaQueryList {
  return window.matchMedia("(prefers-color-scheme: dark)");
}

/** Apply the chosen theme, or the system's, and follow changes. */
export function followTheme(): void {
  theme.subscribe(apply);
  systemIsDark().addEventListener("change", apply);
  apply();
}

export function useTheme(): Theme {
  return useKept(theme);
}

/** The theme that is applied now, for canvas drawings. */
export function useShownTheme(): "light" | "dark" {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light"),
  );
}
