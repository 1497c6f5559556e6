// Hosts (tenants). Only the operator can see them.

import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, newKey } from "./client";
import { tokenAfter } from "./pages";
import type { components } from "./schema";

export type Host = components["schemas"]["HostDocument"];

export const hostList = infiniteQueryOptions({
  queryKey: ["hosts"],
  queryFn: ({ pageParam, signal }) =>
    ask(api.GET("/api/v1/hosts", { params: { query: { page_size: 500, page_token: pageParam } }, signal })),
  initialPageParam: "",
  getNextPageParam: tokenAfter,
});

export function useMakeHost() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (name: string) =>
      ask(api.POST("/api/v1/hosts", { body: { name }, headers: { "Idempotency-Key": newKey() } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["hosts"] }),
  });
}
