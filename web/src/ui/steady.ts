// Keeps rows in place while the user reads a list that changes. Changes within a row are shown at once. New
// rows are announced, but not shown until the user asks. Removed rows stay, faded. A new order also waits.
// New rows after all others are shown at once, since they move nothing.

import { useCallback, useMemo, useRef, useState } from "react";

export interface Steady<Row> {
  /** The rows in the order that the user sees. */
  rows: readonly Row[];
  gone: ReadonlySet<string>;
  arrived: number;
  isReordered: boolean;
}

/** Merge fetched rows into the rows on the page. `held` are the ids on the page in order, `known` the rows
 * last shown for them. */
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

/** Keep rows in place until `show` is called, or until `key` changes (another list). */
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
