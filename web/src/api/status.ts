// Cluster status: the figures of the overview and of the panel beside the schedules.

import { queryOptions } from "@tanstack/react-query";
import { observeServerTime, presently } from "@/time/clock";
import { api, ask } from "./client";
import type { ClusterStatus } from "./types";

const HOUR_MS = 3_600_000;

export const clusterStatus = queryOptions({
  queryKey: ["status"],
  queryFn: async ({ signal }): Promise<ClusterStatus> => {
    const sentAt = Date.now();
    const found = await ask(api.GET("/api/v1/status", { signal }));
    observeServerTime(new Date(found.now), sentAt, Date.now());
    return found;
  },
  // The stream reports most changes. Polling covers what changes only with time.
  refetchInterval: 10_000,
});

/** Executions of the last hour, per minute. */
export const recentLoad = queryOptions({
  queryKey: ["load"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/load", { signal })),
  refetchInterval: 15_000,
});

/** The number of planned fire times within the next hour. */
export const dueNextHour = queryOptions({
  queryKey: ["timeline", "next hour"],
  queryFn: async ({ signal }) => {
    const from = presently();
    const to = new Date(from.getTime() + HOUR_MS);
    const query = { from: from.toISOString(), to: to.toISOString(), bins: 60 };
    const found = await ask(api.GET("/api/v1/timeline", { params: { query }, signal }));
    return {
      count: found.bins.reduce((sum, bin) => sum + bin.planned, 0),
      schedules: Object.keys(found.planned_by_schedule).length,
      isPartial: found.is_partial,
    };
  },
  refetchInterval: 60_000,
});

export const instances = queryOptions({
  queryKey: ["instances"],
  queryFn: ({ signal }) =>
    ask(api.GET("/api/v1/instances", { params: { query: { page_size: 100 } }, signal })),
  refetchInterval: 10_000,
});
