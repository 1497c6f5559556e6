// API keys. Only admins can see them.

import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given } from "./client";
import { tokenAfter } from "./pages";
import { because } from "./reason";
import type { components } from "./schema";

export type Key = components["schemas"]["KeyDocument"];
export type MadeKey = components["schemas"]["MadeKeyDocument"];
type NewKey = components["schemas"]["NewKey"];

export const keyList = infiniteQueryOptions({
  queryKey: ["keys"],
  queryFn: ({ pageParam, signal }) =>
    ask(api.GET("/api/v1/keys", { params: { query: { page_size: 500, page_token: pageParam } }, signal })),
  initialPageParam: "",
  getNextPageParam: tokenAfter,
});

export function useMakeKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (asked: Pick<NewKey, "name" | "role"> & Partial<NewKey>) =>
      ask(api.POST("/api/v1/keys", { body: given<NewKey>(asked) })),
    // Drop the key from the cache as soon as it is no longer shown.
    gcTime: 0,
    onSettled: () => client.invalidateQueries({ queryKey: ["keys"] }),
  });
}

export function useRevokeKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, reason }: { id: string; reason: string }) =>
      ask(
        api.DELETE("/api/v1/keys/{key_id}", { params: { path: { key_id: id } }, headers: because(reason) }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["keys"] }),
  });
}
