// Schedules: queries and actions.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given, newKey, start } from "./client";
import type { paths } from "./schema";
import type { ScheduleAct, ScheduleBulk, ScheduleFilter, TriggerNow } from "./types";

const PAGE_SIZE = 50;
/** Number of recent executions in a row. */
export const RECENT = 20;

type ListQuery = NonNullable<paths["/api/v1/schedules"]["get"]["parameters"]["query"]>;
export type ScheduleSort = NonNullable<ListQuery["sort"]>;

/** Pages of schedules, each with its latest executions. */
export function scheduleList(filter: ScheduleFilter, sort: ScheduleSort) {
  return infiniteQueryOptions({
    queryKey: ["schedules", "list", filter, sort],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...asQuery(filter), sort, recent: RECENT, page_size: PAGE_SIZE, page_token: pageParam };
      return ask(api.GET("/api/v1/schedules", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => (last.next_page_token === "" ? undefined : last.next_page_token),
  });
}

/** The first 8 schedules whose name or description contains `q`. */
export function schedulesLike(q: string) {
  return queryOptions({
    queryKey: ["schedules", "like", q],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/schedules", { params: { query: { q, page_size: 8 } }, signal })),
    staleTime: 10_000,
  });
}

export function schedule(id: string) {
  return queryOptions({
    queryKey: ["schedule", id],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: id } }, signal })),
  });
}

/** The next `n` fire times of a schedule. */
export function nextFires(id: string, n: number) {
  return queryOptions({
    queryKey: ["schedule", id, "fires", n],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/fires", {
          params: { path: { schedule_id: id }, query: { n } },
          signal,
        }),
      ),
  });
}

/** Convert a filter to query parameters. Empty values are left out. */
function asQuery(filter: ScheduleFilter): ListQuery {
  const given = Object.entries(filter).filter(
    ([, value]) =>
      value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(given) as ListQuery;
}

// --- actions -------------------------------------------------------------------------------------------

interface Asked {
  id: string;
  reason?: string;
}

export function usePause() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, reason, until }: Asked & { until?: string }) =>
      ask(
        api.POST("/api/v1/schedules/{schedule_id}/pause", {
          params: { path: { schedule_id: id } },
          body: { reason: reason || null, until_ts: until || null },
        }),
      ),
    onSettled: refresh,
  });
}

export function useResume() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, reason }: Asked) =>
      ask(
        api.POST("/api/v1/schedules/{schedule_id}/resume", {
          params: { path: { schedule_id: id } },
          body: { reason: reason || null },
        }),
      ),
    onSettled: refresh,
  });
}

export function useTrigger() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, reason }: Asked) =>
      start(() =>
        api.POST("/api/v1/schedules/{schedule_id}/trigger", {
          params: { path: { schedule_id: id } },
          body: given<TriggerNow>({ reason: reason || null }),
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: refresh,
  });
}

/** Which schedules to act on: those with these ids, or all that match a filter. */
export type Chosen = { ids: readonly string[] } | { filter: ScheduleFilter };

export interface BulkAsked {
  action: ScheduleAct;
  chosen: Chosen;
  reason?: string;
  until?: string;
  /** The server refuses the request, and changes nothing, if another number of schedules matches. */
  expected?: number;
}

function bulkBody({ action, chosen, reason, until, expected }: BulkAsked, isDryRun: boolean): ScheduleBulk {
  return given<ScheduleBulk>({
    action,
    dry_run: isDryRun,
    reason: reason || null,
    until_ts: until || null,
    expected_count: expected ?? null,
    ...("ids" in chosen
      ? { schedule_ids: [...chosen.ids] }
      : { filter: chosen.filter as NonNullable<ScheduleBulk["filter"]> }),
  });
}

/** Count the schedules that a bulk action would affect (dry run). */
export function bulkCount(action: ScheduleAct, chosen: Chosen) {
  return queryOptions({
    queryKey: ["schedules", "count", action, chosen],
    queryFn: () => ask(api.POST("/api/v1/schedules/bulk", { body: bulkBody({ action, chosen }, true) })),
    gcTime: 0,
    retry: false,
  });
}

export function useBulk() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (asked: BulkAsked) =>
      ask(
        api.POST("/api/v1/schedules/bulk", {
          body: bulkBody(asked, false),
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: refresh,
  });
}

/** Return a function that refetches everything a change of schedules may affect. */
function useRefresh(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all(
      [["schedules", "list"], ["schedule"], ["status"], ["timeline"]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
}
