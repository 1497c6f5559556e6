// Schedules: reading and steering them.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given, newKey, start } from "./client";
import type { paths } from "./schema";
import type { ScheduleAct, ScheduleBulk, ScheduleFilter, TriggerNow } from "./types";

const PAGE_SIZE = 50;
/** Executions of a row. */
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

/** The first few whose name or description has these letters in it. */
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

/** The next times of a schedule. */
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

/** A filter as parameters: what is not given is not sent. */
function asQuery(filter: ScheduleFilter): ListQuery {
  const given = Object.entries(filter).filter(
    ([, value]) =>
      value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(given) as ListQuery;
}

// --- steering ------------------------------------------------------------------------------------------

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

/** Which schedules to act on: these, or all that match. */
export type Chosen = { ids: readonly string[] } | { filter: ScheduleFilter };

export interface BulkAsked {
  action: ScheduleAct;
  chosen: Chosen;
  reason?: string;
  until?: string;
  /** Another number of schedules is refused, and nothing is done. */
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
      : { filter: given<NonNullable<ScheduleBulk["filter"]>>(chosen.filter) }),
  });
}

/** How many it would be. */
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

/** All that a change of schedules may have changed. */
function useRefresh(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all(
      [["schedules", "list"], ["schedule"], ["status"], ["timeline"]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
}
