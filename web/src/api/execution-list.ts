// Executions: list queries, updates from the stream, and actions.

import {
  type InfiniteData,
  infiniteQueryOptions,
  type QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { api, ask, given, newKey } from "./client";
import type { components, paths } from "./schema";
import type { ExecutionTold } from "./stream";
import type { Execution, Status } from "./types";

type Schemas = components["schemas"];
export type ExecutionAct = Schemas["ExecutionAct"];
export type ExecutionFilter = Partial<Schemas["ExecutionFilterForm"]>;
export type TriggeredBy = Schemas["TriggeredBy"];
export type Attempt = Schemas["AttemptDocument"];
type ExecutionBulk = Schemas["ExecutionBulk"];
type ListQuery = NonNullable<paths["/api/v1/executions"]["get"]["parameters"]["query"]>;

export const TRIGGERED_BY = [
  "scheduler",
  "manual",
  "api",
  "backfill",
] as const satisfies readonly TriggeredBy[];

/** Statuses from which a user may retry an execution. */
export const RETRYABLE = ["failed", "timeout", "cancelled", "unknown"] as const satisfies readonly Status[];
/** Statuses in which an execution can be cancelled. */
export const CANCELLABLE = ["pending", "running", "retrying"] as const satisfies readonly Status[];

const PAGE_SIZE = 50;

/** Executions, latest first: sorted by creation time, or by fire time if the filter names schedules. */
export function executionList(filter: ExecutionFilter) {
  return infiniteQueryOptions({
    queryKey: ["executions", "list", filter],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...(filter as ListQuery), page_size: PAGE_SIZE, page_token: pageParam };
      return ask(api.GET("/api/v1/executions", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => (last.next_page_token === "" ? undefined : last.next_page_token),
  });
}

/** All attempts of an execution, in order. */
export function executionAttempts(id: string) {
  return queryOptions({
    queryKey: ["execution", id, "attempts"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/executions/{execution_id}/attempts", {
          params: { path: { execution_id: id } },
          signal,
        }),
      ),
  });
}

// --- updates from the stream -----------------------------------------------------------------------------

/** Apply a stream event to an execution. Fields that the event does not carry stay until the next fetch. But
 * the outcome (error, result, …) is cleared if the status or attempt changed: it is no longer true. */
export function withTold(known: Execution, told: ExecutionTold): Execution {
  const isAnother = told.status !== known.status || told.attempt !== known.attempt;
  return {
    ...known,
    ...(isAnother ? { error: null, traceback: null, reason: null, result: null } : {}),
    status: told.status,
    attempt: told.attempt,
    progress: told.progress,
    started_ts: told.started_ts,
    ended_ts: told.ended_ts,
    duration_seconds: told.duration_seconds,
  };
}

interface Page {
  items: Execution[];
  next_page_token: string;
}

/** Apply a stream event to the cached lists and to the cached execution. */
export function tellExecution(client: QueryClient, told: ExecutionTold): void {
  client.setQueriesData<InfiniteData<Page>>({ queryKey: ["executions", "list"] }, (known) => {
    const holder = known?.pages.findIndex((page) => page.items.some((row) => isOf(row, told))) ?? -1;
    const page = known?.pages[holder];
    if (known === undefined || page === undefined) {
      return known;
    }
    const items = page.items.map((row) => (isOf(row, told) ? withTold(row, told) : row));
    return { ...known, pages: known.pages.with(holder, { ...page, items }) };
  });
  client.setQueryData<Execution>(["execution", told.execution_id], (known) =>
    known === undefined ? known : withTold(known, told),
  );
}

function isOf(row: Execution, told: ExecutionTold): boolean {
  return row.execution_id === told.execution_id;
}

// --- actions ---------------------------------------------------------------------------------------------

/** Retry or cancel one execution. */
export function useExecutionAct() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ act, id, reason }: { act: ExecutionAct; id: string; reason: string }) => {
      const asked = { params: { path: { execution_id: id } }, body: { reason: reason || null } };
      return ask(
        act === "retry"
          ? api.POST("/api/v1/executions/{execution_id}/retry", asked)
          : api.POST("/api/v1/executions/{execution_id}/cancel", asked),
      );
    },
    onSettled: refresh,
  });
}

/** Which executions to act on: those with these ids, or all that match a filter. */
export type ChosenExecutions = { ids: readonly string[] } | { filter: ExecutionFilter };

interface BulkAsked {
  action: ExecutionAct;
  chosen: ChosenExecutions;
  reason?: string;
  /** The server refuses the request, and changes nothing, if another number of executions matches. */
  expected?: number;
}

function bulkBody({ action, chosen, reason, expected }: BulkAsked, isDryRun: boolean): ExecutionBulk {
  return given<ExecutionBulk>({
    action,
    dry_run: isDryRun,
    reason: reason || null,
    expected_count: expected ?? null,
    ...("ids" in chosen
      ? { execution_ids: [...chosen.ids] }
      : { filter: given<NonNullable<ExecutionBulk["filter"]>>(chosen.filter) }),
  });
}

/** Count the executions that a bulk action would affect (dry run). */
export function executionBulkCount(action: ExecutionAct, chosen: ChosenExecutions) {
  return queryOptions({
    // Not under "executions": the count must not be refetched while the user is asked to confirm it.
    queryKey: ["execution count", action, chosen],
    queryFn: () => ask(api.POST("/api/v1/executions/bulk", { body: bulkBody({ action, chosen }, true) })),
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
  });
}

export function useExecutionBulk() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (asked: BulkAsked) =>
      ask(
        api.POST("/api/v1/executions/bulk", {
          body: bulkBody(asked, false),
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: refresh,
  });
}

function useRefresh(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all(
      [["executions"], ["execution"], ["status"], ["schedules", "list"]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
}
