// The previous and next execution of the same schedule. The API lists latest first. So the previous one is
// the first item of a list. The next one is the last item of a list that starts at this fire time, and that
// list must fit into one page: the search varies the length of its time range until it does.

import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import type { Execution } from "./types";

export interface Neighbours {
  before: Execution | null;
  after: Execution | null;
}

const PAGE_SIZE = 50;
const MAX_STRETCHES = 24;
const FIRST_STRETCH_MS = 60_000;

interface Listed {
  items: readonly Execution[];
  isWhole: boolean;
}
type Read = (from: string, to: string | null, pageSize: number) => Promise<Listed>;

/** Find the execution after `known`; null: not found. `read` lists executions that fire in [from, to). */
export async function findAfter(known: Execution, before: Execution | null, read: Read) {
  const others = ({ items }: Listed) => items.filter((each) => each.execution_id !== known.execution_id);
  const all = await read(known.fire_ts, null, PAGE_SIZE);
  if (all.isWhole) {
    return others(all).at(-1) ?? null;
  }
  const here = Date.parse(known.fire_ts);
  // Range lengths in ms: `none` is known to contain no other execution, `many` more than one page.
  let none = 0;
  let many = Math.max(2, Date.parse(all.items[0]?.fire_ts ?? known.fire_ts) - here + 1);
  let width = before === null ? FIRST_STRETCH_MS : Math.max(1, here - Date.parse(before.fire_ts)) * 2;
  for (let tries = 0; tries < MAX_STRETCHES && many - none > 1; tries += 1) {
    width = Math.min(width, Math.ceil((none + many) / 2));
    const found = await read(known.fire_ts, new Date(here + width).toISOString(), PAGE_SIZE);
    const next = others(found).at(-1);
    if (found.isWhole && next !== undefined) {
      return next;
    }
    if (found.isWhole) {
      none = width;
      width *= 8;
    } else {
      many = width;
    }
  }
  return null;
}

export function neighbours(known: Execution) {
  return queryOptions({
    queryKey: ["execution", known.execution_id, "neighbours"],
    queryFn: async ({ signal }): Promise<Neighbours> => {
      const of = { schedule_id: [known.schedule_id] };
      const list = async (query: object): Promise<Listed> => {
        const found = await ask(
          api.GET("/api/v1/executions", { params: { query: { ...of, ...query } }, signal }),
        );
        return { items: found.items, isWhole: found.next_page_token === "" };
      };
      const before = (await list({ fire_to: known.fire_ts, page_size: 1 })).items[0] ?? null;
      const after = await findAfter(known, before, (fire_from, fire_to, page_size) =>
        list({ fire_from, ...(fire_to === null ? {} : { fire_to }), page_size }),
      );
      return { before, after };
    },
    staleTime: 10_000,
  });
}
