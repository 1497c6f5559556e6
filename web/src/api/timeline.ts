// Load over time: of all schedules together, and of each one.

import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Timeline = Schemas["TimelineDocument"];
export type Bin = Schemas["BinDocument"];

export function timeline(from: string, to: string, bins: number) {
  return queryOptions({
    queryKey: ["timeline", "load", from, to, bins],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/timeline", { params: { query: { from, to, bins } }, signal })),
  });
}
