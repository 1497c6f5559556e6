// One schedule over time: its fire times, executions, statistics, versions and backfills.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given, newKey, start } from "./client";
import type { components, paths } from "./schema";
import type { Status, TriggerNow } from "./types";

type Schemas = components["schemas"];

export type Fire = Schemas["FireDocument"];
export type Stats = Schemas["StatsDocument"];
export type Spread = Schemas["SpreadDocument"];
export type Version = Schemas["VersionDocument"];
export type VersionWithChanges = Schemas["VersionWithChanges"];
export type Change = Schemas["ChangeDocument"];
export type Backfill = Schemas["BackfillDocument"];
type ExecutionsQuery = NonNullable<
  paths["/api/v1/schedules/{schedule_id}/executions"]["get"]["parameters"]["query"]
>;

const PAGE = 25;
export const MAX_PLANNED = 1000;

/** Planned fire times between two instants, at most MAX_PLANNED. */
export function plannedBetween(id: string, version: number, from: string, to: string) {
  return queryOptions({
    queryKey: ["planned", id, version, from, to],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/fires", {
          params: { path: { schedule_id: id }, query: { from, to, n: MAX_PLANNED } },
          signal,
        }),
      ),
    staleTime: 300_000,
  });
}

/** Past fire times and their outcomes, latest first. */
export function ledgerOf(id: string) {
  return infiniteQueryOptions({
    queryKey: ["schedule", id, "ledger"],
    queryFn: async ({ pageParam, signal }) => {
      const query = pageParam === "" ? { n: PAGE } : { n: PAGE, to: pageParam };
      const found = await ask(
        api.GET("/api/v1/schedules/{schedule_id}/fires", {
          params: { path: { schedule_id: id }, query },
          signal,
        }),
      );
      return found.items.filter((fire) => fire.state !== "planned").toReversed();
    },
    initialPageParam: "",
    getNextPageParam: (last) => (last.length < PAGE ? undefined : last.at(-1)?.fire_ts),
  });
}

export function executionsOf(id: string, status: readonly Status[]) {
  return infiniteQueryOptions({
    queryKey: ["schedule", id, "executions", status],
    queryFn: ({ pageParam, signal }) => {
      const query: ExecutionsQuery = { page_size: PAGE, page_token: pageParam };
      if (status.length > 0) query.status = [...status];
      return ask(
        api.GET("/api/v1/schedules/{schedule_id}/executions", {
          params: { path: { schedule_id: id }, query },
          signal,
        }),
      );
    },
    initialPageParam: "",
    getNextPageParam: (last) => (last.next_page_token === "" ? undefined : last.next_page_token),
  });
}

/** Executions between two fire times, both included. The ledger shows from them how late each one was. */
export function executionsBetween(id: string, from: string, to: string) {
  return queryOptions({
    queryKey: ["schedule", id, "executions between", from, to],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/executions", {
          params: {
            path: { schedule_id: id },
            query: { fire_from: from, fire_to: justAfter(to), page_size: 200 },
          },
          signal,
        }),
      ),
  });
}

function justAfter(instant: string): string {
  return new Date(Date.parse(instant) + 1000).toISOString();
}

/** Statistics of a schedule. Polled, not refetched on each event: they are expensive for a busy schedule. */
export function statsOf(id: string) {
  return queryOptions({
    queryKey: ["stats", id],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/stats", { params: { path: { schedule_id: id } }, signal }),
      ),
    refetchInterval: 15_000,
  });
}

/** All versions, latest first. `current` is part of the key, so that a new version causes a fetch. */
export function versionsOf(id: string, current: number) {
  return infiniteQueryOptions({
    queryKey: ["versions", id, current],
    queryFn: ({ pageParam, signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/versions", {
          params: { path: { schedule_id: id }, query: { page_size: PAGE, page_token: pageParam } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => (last.next_page_token === "" ? undefined : last.next_page_token),
  });
}

/** A version and its differences from the version `against`; null: from the previous version. */
export function versionOf(id: string, version: number, against: number | null) {
  return queryOptions({
    queryKey: ["versions", id, "one", version, against],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/versions/{version}", {
          params: { path: { schedule_id: id, version }, query: against === null ? {} : { against } },
          signal,
        }),
      ),
    // Versions never change.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function backfillsOf(id: string) {
  return queryOptions({
    queryKey: ["schedule", id, "backfills"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/backfills", {
          params: { path: { schedule_id: id }, query: { page_size: 10 } },
          signal,
        }),
      ),
  });
}

/** Whether a backfill still has executions to create or to finish. */
export function goesOn(backfill: Backfill): boolean {
  return backfill.state === "running" || backfill.ended_count < backfill.created_count;
}

/** A backfill, polled until it has ended. */
export function backfillWith(known: Backfill) {
  return queryOptions({
    queryKey: ["backfill", known.backfill_id],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/backfills/{backfill_id}", {
          params: { path: { backfill_id: known.backfill_id } },
          signal,
        }),
      ),
    initialData: known,
    initialDataUpdatedAt: 0,
    refetchInterval: (query) => (query.state.data && goesOn(query.state.data) ? 1500 : false),
  });
}

// --- actions -------------------------------------------------------------------------------------------

export function useRunWith(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ args, reason }: { args: TriggerNow["args"]; reason: string }) =>
      start(() =>
        api.POST("/api/v1/schedules/{schedule_id}/trigger", {
          params: { path: { schedule_id: id } },
          body: given<TriggerNow>({ args, reason: reason || null }),
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["schedule", id] }),
  });
}

export function useBackfill(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ from, to, reason }: { from: string; to: string; reason: string }) =>
      start(() =>
        api.POST("/api/v1/schedules/{schedule_id}/backfill", {
          params: { path: { schedule_id: id } },
          body: { from_ts: from, to_ts: to, reason: reason || null },
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["schedule", id] }),
  });
}

export function useCancelBackfill() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      ask(api.POST("/api/v1/backfills/{backfill_id}/cancel", { params: { path: { backfill_id: id } } })),
    onSuccess: (made) => client.setQueryData(["backfill", made.backfill_id], made),
  });
}

export function useRestore(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ version, current, reason }: { version: number; current: number; reason: string }) =>
      ask(
        api.POST("/api/v1/schedules/{schedule_id}/versions/{version}/restore", {
          params: { path: { schedule_id: id, version } },
          body: { reason: reason || null },
          headers: { "If-Match": `"${current}"` },
        }),
      ),
    onSettled: () => {
      for (const queryKey of [["schedule", id], ["schedules", "list"], ["status"], ["timeline"]]) {
        void client.invalidateQueries({ queryKey });
      }
    },
  });
}
