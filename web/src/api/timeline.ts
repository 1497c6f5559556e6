// Load over time, of all schedules together and of single ones.

import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Timeline = Schemas["TimelineDocument"];
export type Bin = Schemas["BinDocument"];
export type Fire = Schemas["FireDocument"];

/** The API tells at most so many times of a schedule, past ones and planned ones each. */
export const MOST_FIRES = 1000;

export function timeline(from: string, to: string, bins: number) {
  return queryOptions({
    queryKey: ["timeline", "load", from, to, bins],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/timeline", { params: { query: { from, to, bins } }, signal })),
    refetchInterval: 20_000,
  });
}

/** The fire times of one schedule in a range: what became of them, and what is planned. */
export function firesWithin(id: string, from: string, to: string) {
  return queryOptions({
    queryKey: ["timeline", "fires", id, from, to],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/schedules/{schedule_id}/fires", {
          params: { path: { schedule_id: id }, query: { from, to, n: MOST_FIRES } },
          signal,
        }),
      ),
    staleTime: 15_000,
    refetchInterval: 30_000,
    retry: false,
  });
}
