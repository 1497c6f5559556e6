// Instances, queues and task functions.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask } from "./client";
import { tokenAfter } from "./pages";
import type { components } from "./schema";

export type Queue = components["schemas"]["QueueDocument"];
export type Task = components["schemas"]["TaskDocument"];
export type Leader = components["schemas"]["LeaderDocument"];
export type TransportStatus = components["schemas"]["TransportStatus"];
export type LeaseProviderStatus = components["schemas"]["LeaseProviderStatus"];
export type Priority = components["schemas"]["Priority"];

/** The largest page of the API. Totals computed in the browser are complete up to this number of items. */
const MAX_ITEMS = 500;
/** Instances and queues are polled: the stream does not report them. */
const READ_EVERY_MS = 3000;

export const allInstances = queryOptions({
  queryKey: ["instances", "all"],
  queryFn: ({ signal }) =>
    ask(api.GET("/api/v1/instances", { params: { query: { page_size: MAX_ITEMS } }, signal })),
  refetchInterval: READ_EVERY_MS,
});

export const allQueues = queryOptions({
  queryKey: ["queues", "all"],
  queryFn: ({ signal }) =>
    ask(api.GET("/api/v1/queues", { params: { query: { page_size: MAX_ITEMS } }, signal })),
  refetchInterval: READ_EVERY_MS,
});

interface QueueAsked {
  name: string;
  reason?: string;
}

export function usePauseQueue() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ name, reason }: QueueAsked) =>
      ask(
        api.POST("/api/v1/queues/{name}/pause", {
          params: { path: { name } },
          body: { reason: reason || null },
        }),
      ),
    onSettled: refresh,
  });
}

export function useResumeQueue() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ name, reason }: QueueAsked) =>
      ask(
        api.POST("/api/v1/queues/{name}/resume", {
          params: { path: { name } },
          body: { reason: reason || null },
        }),
      ),
    onSettled: refresh,
  });
}

interface DrainAsked {
  id: string;
  isDraining: boolean;
  reason?: string;
}

/** Drain an instance (it takes no new work), or resume it. */
export function useDrain() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, isDraining, reason }: DrainAsked) => {
      const asked = { params: { path: { instance_id: id } }, body: { reason: reason || null } };
      return ask(
        isDraining
          ? api.POST("/api/v1/instances/{instance_id}/drain", asked)
          : api.POST("/api/v1/instances/{instance_id}/resume", asked),
      );
    },
    onSettled: refresh,
  });
}

export interface TaskWanted {
  q: string;
  /** Null: active and inactive. */
  isActive: boolean | null;
  /** Whether the task is one of the scheduler's own. Null: both kinds. */
  isSystem: boolean | null;
}

export function taskList({ q, isActive, isSystem }: TaskWanted) {
  return infiniteQueryOptions({
    queryKey: ["tasks", "list", q, isActive, isSystem],
    queryFn: ({ pageParam, signal }) => {
      const query = {
        page_size: 100,
        page_token: pageParam,
        ...(q === "" ? {} : { q }),
        ...(isActive === null ? {} : { is_active: isActive }),
        ...(isSystem === null ? {} : { is_system: isSystem }),
      };
      return ask(api.GET("/api/v1/task-functions", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: tokenAfter,
    refetchInterval: 10_000,
  });
}

export function taskFunction(name: string) {
  return queryOptions({
    queryKey: ["tasks", "one", name],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/task-functions/{name}", { params: { path: { name } }, signal })),
  });
}

/** The first active schedules that run a task function, for a warning about tasks that no worker runs.
 * `isAll`: there are no more than these. */
export const functionSchedules = queryOptions({
  queryKey: ["schedules", "of functions"],
  queryFn: async ({ signal }) => {
    const query = { target: ["function" as const], active: true, page_size: MAX_ITEMS };
    const found = await ask(api.GET("/api/v1/schedules", { params: { query }, signal }));
    return { schedules: found.items, isAll: found.next_page_token === "" };
  },
  refetchInterval: 30_000,
});

export const allTasks = queryOptions({
  queryKey: ["tasks", "all"],
  queryFn: async ({ signal }) => {
    const found = await ask(
      api.GET("/api/v1/task-functions", { params: { query: { page_size: MAX_ITEMS } }, signal }),
    );
    return { tasks: found.items, isAll: found.next_page_token === "" };
  },
  refetchInterval: 30_000,
});

export function useSwitchTask() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, isActive, reason }: { name: string; isActive: boolean; reason?: string }) =>
      ask(
        api.PATCH("/api/v1/task-functions/{name}", {
          params: { path: { name } },
          body: { is_active: isActive, reason: reason || null },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["tasks"] }),
  });
}

function useRefresh(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all([["queues"], ["status"]].map((queryKey) => client.invalidateQueries({ queryKey })));
}
