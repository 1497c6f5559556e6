import { useSyncExternalStore } from "react";

function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = window.matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    () => window.matchMedia(query).matches,
  );
}

/** Whether the screen is too narrow for a table, as on a phone. */
export function useIsNarrow(): boolean {
  return useMedia("(width < 48rem)");
}

/** Whether the screen is wide enough to show everything side by side. */
export function useIsWide(): boolean {
  return useMedia("(width >= 90rem)");
}
