// Notifications: the rules, and the messages that they produced.

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

/** All rules. A host has at most 200, so one page holds them. */
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

/** Polling interval while a message is pending. */
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

/** The latest 100 messages of all rules, in any delivery state. */
export const latestMessages = queryOptions({
  queryKey: ["notifications", "latest"],
  queryFn: async ({ signal }) =>
    (await ask(api.GET("/api/v1/notifications", { params: { query: { page_size: 100 } }, signal }))).items,
  refetchInterval: ({ state }) => (state.data?.some(isPending) ? PENDING_MS : QUIET_MS),
});

/** One message, polled until it is delivered or dead. */
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

/** Replace a rule. The server answers 412 if the rule has another version by now. */
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

/** Enable, disable or mute a rule. Only these fields are sent, so nobody else's change is overwritten. */
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
