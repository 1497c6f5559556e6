// Lists that are read while they change. Rows keep their places under the reader: what changes in a row is
// shown at once; a row that is new is announced and waits; one that is gone stays, faded; another order waits.
// New rows behind all others move nothing, and are shown at once.

import { useCallback, useMemo, useRef, useState } from "react";

export interface Steady<Row> {
  /** In the places that the reader knows. */
  rows: readonly Row[];
  gone: ReadonlySet<string>;
  arrived: number;
  isReordered: boolean;
}

/** What to show of a fresh reading, to somebody who sees rows with the ids `held`; `known` has their last form. */
export function holdPlaces<Row>(
  held: readonly string[],
  known: ReadonlyMap<string, Row>,
  fresh: readonly Row[],
  idOf: (row: Row) => string,
): Steady<Row> {
  const byId = new Map(fresh.map((row) => [idOf(row), row]));
  const heldIds = new Set(held);
  const gone = new Set(held.filter((id) => !byId.has(id)));
  const lastHeld = fresh.findLastIndex((row) => heldIds.has(idOf(row)));
  const behind = fresh.slice(lastHeld + 1);
  const rows: Row[] = [];
  for (const id of held) {
    const row = byId.get(id) ?? known.get(id);
    if (row !== undefined) rows.push(row);
  }
  const arrived = fresh.slice(0, lastHeld + 1).filter((row) => !heldIds.has(idOf(row))).length;
  const order = fresh.map(idOf).filter((id) => heldIds.has(id));
  const isReordered = held.filter((id) => byId.has(id)).some((id, index) => id !== order[index]);
  return { rows: [...rows, ...behind], gone, arrived, isReordered };
}

interface Held<Row> {
  key: string;
  ids: readonly string[];
  known: Map<string, Row>;
}

/** Rows that stay in their places until `show` is called, or `key` says that another list is wanted. */
export function useSteadyRows<Row>(
  fresh: readonly Row[] | undefined,
  idOf: (row: Row) => string,
  key: string,
): Steady<Row> & { show: () => void } {
  const held = useRef<Held<Row> | null>(null);
  const [turn, setTurn] = useState(0);
  const steady = useMemo(() => {
    if (fresh === undefined) {
      return { rows: [], gone: new Set<string>(), arrived: 0, isReordered: false };
    }
    const wanted = `${turn} ${key}`;
    const before = held.current?.key === wanted ? held.current : null;
    const made =
      before === null || before.ids.length === 0
        ? { rows: fresh, gone: new Set<string>(), arrived: 0, isReordered: false }
        : holdPlaces(before.ids, before.known, fresh, idOf);
    held.current = {
      key: wanted,
      ids: made.rows.map(idOf),
      known: new Map(made.rows.map((row) => [idOf(row), row])),
    };
    return made;
  }, [fresh, idOf, key, turn]);
  const show = useCallback(() => setTurn((before) => before + 1), []);
  return { ...steady, show };
}
