// The log of an execution. Each fetch continues where the last one ended.

import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import type { components } from "./schema";

export type LogLine = components["schemas"]["LineDocument"];

export interface Log {
  readonly lines: readonly LogLine[];
  /** Token of the last page, which may have grown since. `from` is the index of its first line. */
  readonly token: string;
  readonly from: number;
  /** Whether the server has more pages. */
  readonly hasMore: boolean;
}

export const EMPTY_LOG: Log = { lines: [], token: "", from: 0, hasMore: true };

const PAGE_SIZE = 500;
/** Pages per fetch; the user can load more. */
const MAX_PAGES = 8;

/** Merge the page that was fetched with `known.token` into the log. */
export function readOn(known: Log, page: { items: readonly LogLine[]; next_page_token: string }): Log {
  const hasMore = page.next_page_token !== "";
  if (!hasMore && !known.hasMore && known.from + page.items.length === known.lines.length) {
    return known;
  }
  const lines = [...known.lines.slice(0, known.from), ...page.items];
  return hasMore
    ? { lines, token: page.next_page_token, from: lines.length, hasMore }
    : { lines, token: known.token, from: known.from, hasMore };
}

export function executionLog(id: string) {
  return queryOptions({
    queryKey: ["execution", id, "log"],
    queryFn: async ({ client, signal, queryKey }): Promise<Log> => {
      let log = client.getQueryData<Log>(queryKey) ?? EMPTY_LOG;
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const query = { page_size: PAGE_SIZE, page_token: log.token };
        const params = { path: { execution_id: id }, query };
        log = readOn(log, await ask(api.GET("/api/v1/executions/{execution_id}/logs", { params, signal })));
        if (!log.hasMore) break;
      }
      return log;
    },
    structuralSharing: false,
  });
}

const RANKS: Record<string, number> = { debug: 10, info: 20, warning: 30, error: 40, critical: 50 };

/** Whether a line has at least the wanted level. Lines with a custom level are always shown. */
export function isAtLeast(level: string, wanted: string): boolean {
  return (RANKS[level] ?? Number.POSITIVE_INFINITY) >= (RANKS[wanted] ?? 0);
}
