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

/** Too narrow for a table: a phone. */
export function useIsNarrow(): boolean {
  return useMedia("(width < 48rem)");
}

/** Wide enough for everything beside each other. */
export function useIsWide(): boolean {
  return useMedia("(width >= 90rem)");
}
