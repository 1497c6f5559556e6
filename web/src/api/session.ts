// Who is signed in, and what they may do.

import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { base } from "@/routing/base";
import { api, ask, rememberCsrfToken } from "./client";
import { ProblemError } from "./problem";
import { type Me, ROLES, type Role } from "./types";

export const me = queryOptions({
  queryKey: ["me"],
  /** Null: nobody. */
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

/** Why the reader may not do what takes this role; null: they may. */
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
      // Nothing of what was seen stays for whoever comes next.
      client.clear();
      window.location.assign(`${base}/`);
    },
  });
}
