// Secrets. Their values can be written, but never read.

import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask } from "./client";
import { tokenAfter } from "./pages";
import { because } from "./reason";
import type { components } from "./schema";

export type Secret = components["schemas"]["SecretDocument"];

export const secretList = infiniteQueryOptions({
  queryKey: ["secrets"],
  queryFn: ({ pageParam, signal }) =>
    ask(api.GET("/api/v1/secrets", { params: { query: { page_size: 100, page_token: pageParam } }, signal })),
  initialPageParam: "",
  getNextPageParam: tokenAfter,
});

export function useSetSecret() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (secret: { name: string; value: string }) =>
      ask(api.POST("/api/v1/secrets", { body: secret })),
    gcTime: 0,
    onSettled: () => client.invalidateQueries({ queryKey: ["secrets"] }),
  });
}

export function useDeleteSecret() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, reason }: { name: string; reason: string }) =>
      ask(api.DELETE("/api/v1/secrets/{name}", { params: { path: { name } }, headers: because(reason) })),
    onSettled: () => client.invalidateQueries({ queryKey: ["secrets"] }),
  });
}

export function useRotateSecrets() {
  return useMutation({
    mutationFn: (reason: string) => ask(api.POST("/api/v1/secrets/rotate", { headers: because(reason) })),
  });
}
