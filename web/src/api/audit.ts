// The audit log: what was done, by whom, and why.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";
import { tokenAfter } from "./pages";
import type { components, paths } from "./schema";

export type AuditRecord = components["schemas"]["AuditDocument"];
export type AuditWanted = NonNullable<paths["/api/v1/audit"]["get"]["parameters"]["query"]>;

const READ_EVERY_MS = 10_000;

/** Latest first. */
export function auditList(wanted: AuditWanted) {
  return infiniteQueryOptions({
    queryKey: ["audit", "list", wanted],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...wanted, page_size: 50, page_token: pageParam };
      return ask(api.GET("/api/v1/audit", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: tokenAfter,
    // Poll only the first page: refetching would load every page that the user has opened.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) === 1 ? READ_EVERY_MS : false),
  });
}

/** One record; null: not found. The API has no route for one record, so the query lists the records around
 * the time that the id (UUID version 7) begins with. */
export function auditRecord(id: string) {
  return queryOptions({
    queryKey: ["audit", "one", id],
    queryFn: async ({ signal }): Promise<AuditRecord | null> => {
      const at = timeOf(id);
      if (at === null) return null;
      const query = {
        from_ts: new Date(at - 1).toISOString(),
        to_ts: new Date(at + 2).toISOString(),
        page_size: 500,
      };
      const found = await ask(api.GET("/api/v1/audit", { params: { query }, signal }));
      return found.items.find((each) => each.audit_id === id) ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The timestamp in a UUID of version 7, in milliseconds; null: `id` is no UUID of version 7. */
export function timeOf(id: string): number | null {
  const found = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.exec(id);
  return found === null ? null : Number.parseInt(`${found[1]}${found[2]}`, 16);
}
