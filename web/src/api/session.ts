// The session: who is signed in, and with which role.

import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { base } from "@/routing/base";
import { api, ask, rememberCsrfToken } from "./client";
import { ProblemError } from "./problem";
import { type Me, ROLES, type Role } from "./types";

export const me = queryOptions({
  queryKey: ["me"],
  /** Null: nobody is signed in. */
  queryFn: async ({ signal }): Promise<Me | null> => {
    try {
      const found = await ask(api.GET("/api/v1/me", { signal }));
      rememberCsrfToken(found.csrf_token ?? null);
      return found;
    } catch (error) {
      if (error instanceof ProblemError && error.status === 401) {
        rememberCsrfToken(null);
        return null;
      }
      throw error;
    }
  },
  staleTime: 60_000,
});

export function useMe(): Me | null {
  return useQuery(me).data ?? null;
}

export function covers(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/** The text that explains why the user lacks the role; null: the user has it. */
export function useWhyNot(needed: Role): string | null {
  const known = useMe();
  if (known === null || covers(known.role, needed)) {
    return null;
  }
  return `Takes the role ${needed}; yours is ${known.role}.`;
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (key: string) => ask(api.POST("/sign-in", { body: { key } })),
    onSuccess: () => client.resetQueries(),
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => ask(api.POST("/sign-out")),
    onSettled: () => {
      // Clear the cache: the next user must not see this user's data.
      client.clear();
      window.location.assign(`${base}/`);
    },
  });
}
