// What an execution logged, read on from where the last reading ended.

import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import type { components } from "./schema";

export type LogLine = components["schemas"]["LineDocument"];

export interface Log {
  readonly lines: readonly LogLine[];
  /** The page that has the last lines: it begins with the line of this number, and may have grown. */
  readonly token: string;
  readonly from: number;
  /** Whether more is known to be there. */
  readonly hasMore: boolean;
}

export const EMPTY_LOG: Log = { lines: [], token: "", from: 0, hasMore: true };

const PAGE_SIZE = 500;
/** Of one reading; the reader may ask for more. */
const MAX_PAGES = 8;

/** What is known after a page was read at its token. */
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

/** Whether a line is of this level or a graver one; what has a level of its own making is always shown. */
export function isAtLeast(level: string, wanted: string): boolean {
  return (RANKS[level] ?? Number.POSITIVE_INFINITY) >= (RANKS[wanted] ?? 0);
}
