// Selection of rows in a list, for bulk actions.

import { useEffect, useState } from "react";

const NOTHING: ReadonlySet<string> = new Set();

/** The selected rows: by id, or all that match a filter. */
export type ChosenOf<Filter> = { ids: string[] } | { filter: Filter };

/** The selection of a list: some rows, or all that match the filter. A new filter clears it. */
export function useChoice<Filter>(filter: Filter) {
  const [ids, setIds] = useState(NOTHING);
  const [isAll, setAll] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was chosen was chosen under another filter
  useEffect(() => {
    setIds(NOTHING);
    setAll(false);
  }, [filter]);
  const chosen: ChosenOf<Filter> | null = isAll ? { filter } : ids.size > 0 ? { ids: [...ids] } : null;
  return {
    ids,
    isAll,
    chosen,
    choose(made: ReadonlySet<string>) {
      setAll(false);
      setIds(made);
    },
    chooseAll: () => setAll(true),
    clear() {
      setAll(false);
      setIds(NOTHING);
    },
  };
}
