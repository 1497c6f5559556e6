// Notifications: the rules for them, and the messages that became of them.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given, newKey } from "./client";
import { tokenAfter } from "./pages";
import { because } from "./reason";
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Rule = Schemas["NotificationRuleDocument"];
export type RuleSpec = Schemas["NotificationRuleSpec"];
export type Condition = Rule["on"][number];
export type Address = Rule["to"];
export type Message = Schemas["NotificationDocument"];
export type MessageType = Schemas["NotificationType"];
export type Delivery = Schemas["DeliveryState"];
type Patch = Schemas["NotificationRulePatch"];
type Replacement = Schemas["NotificationRuleReplacement"];

export const DELIVERIES = ["pending", "delivered", "dead"] as const satisfies readonly Delivery[];

/** A host has 200 of them at most: they come in one page. */
export const ruleList = queryOptions({
  queryKey: ["notifications", "rules"],
  queryFn: async ({ signal }) => {
    const found = await ask(
      api.GET("/api/v1/notifications/rules", { params: { query: { page_size: 500 } }, signal }),
    );
    return found.items;
  },
});

export function rule(id: string) {
  return queryOptions({
    queryKey: ["notifications", "rule", id],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/notifications/rules/{rule_id}", { params: { path: { rule_id: id } }, signal })),
  });
}

export interface MessageFilter {
  status: readonly Delivery[];
  rule_id: readonly string[];
}

/** How often to look again while something is on its way. */
const PENDING_MS = 2000;
const QUIET_MS = 5000;

export function messageList(filter: MessageFilter) {
  return infiniteQueryOptions({
    queryKey: ["notifications", "messages", filter],
    queryFn: ({ pageParam, signal }) => {
      const query = {
        page_size: 50,
        page_token: pageParam,
        status: [...filter.status],
        rule_id: [...filter.rule_id],
      };
      return ask(api.GET("/api/v1/notifications", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: tokenAfter,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.items.some(isPending)) ? PENDING_MS : QUIET_MS,
  });
}

/** The latest of all rules, whatever became of them. */
export const latestMessages = queryOptions({
  queryKey: ["notifications", "latest"],
  queryFn: async ({ signal }) =>
    (await ask(api.GET("/api/v1/notifications", { params: { query: { page_size: 100 } }, signal }))).items,
  refetchInterval: ({ state }) => (state.data?.some(isPending) ? PENDING_MS : QUIET_MS),
});

/** Followed until it has arrived, or is given up. */
export function message(id: string) {
  return queryOptions({
    queryKey: ["notifications", "message", id],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/notifications/{notification_id}", {
          params: { path: { notification_id: id } },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => (state.data === undefined || isPending(state.data) ? 1000 : false),
  });
}

export function isPending(message: Message): boolean {
  return message.status === "pending";
}

export function useMakeRule() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (spec: RuleSpec) =>
      ask(api.POST("/api/v1/notifications/rules", { body: spec, headers: { "Idempotency-Key": newKey() } })),
    onSettled: refresh,
  });
}

/** Refused with a 412 if the rule is not at this version any more. */
export function useReplaceRule() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, spec, version }: { id: string; spec: RuleSpec; version: number }) =>
      ask(
        api.PUT("/api/v1/notifications/rules/{rule_id}", {
          params: { path: { rule_id: id } },
          body: given<Replacement>(spec),
          headers: { "If-Match": `"${version}"` },
        }),
      ),
    onSettled: refresh,
  });
}

/** Enables, disables, mutes: parts that nobody else's change is lost by. */
export function useChangeRule() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, ...changes }: { id: string } & Partial<Pick<Patch, "enabled" | "muted_until_ts">>) =>
      ask(
        api.PATCH("/api/v1/notifications/rules/{rule_id}", {
          params: { path: { rule_id: id } },
          body: given<Patch>(changes),
        }),
      ),
    onSettled: refresh,
  });
}

export function useDeleteRule() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: ({ id, reason }: { id: string; reason: string }) =>
      ask(
        api.DELETE("/api/v1/notifications/rules/{rule_id}", {
          params: { path: { rule_id: id } },
          headers: because(reason),
        }),
      ),
    onSettled: refresh,
  });
}

export function useTestRule() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (id: string) =>
      ask(
        api.POST("/api/v1/notifications/rules/{rule_id}/test", {
          params: { path: { rule_id: id } },
          headers: { "Idempotency-Key": newKey() },
        }),
      ),
    onSettled: refresh,
  });
}

export function useSendAgain() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (id: string) =>
      ask(
        api.POST("/api/v1/notifications/{notification_id}/retry", {
          params: { path: { notification_id: id } },
        }),
      ),
    onSettled: refresh,
  });
}

function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["notifications"] });
}
