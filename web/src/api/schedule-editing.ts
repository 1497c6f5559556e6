// Creating and changing schedules, and the data that the form needs.

import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, newKey } from "./client";
import type { components, paths } from "./schema";
import type { OfAnyKind, Schedule, Trigger } from "./types";

type Schemas = components["schemas"];

/** A schedule's definition as its author writes it, complete or without the defaults. */
export type Definition = OfAnyKind<Schemas["ScheduleSpec"]>;
export type PreviewAsked = Omit<Schemas["PreviewAsked"], "trigger"> & { trigger: Trigger };
export type Preview = Schemas["PreviewDocument"];
export type Kind = Schemas["KindDocument"];
export type TaskFunction = Schemas["TaskDocument"];
export type Calendar = Schemas["CalendarDocument"];

type Replacement =
  paths["/api/v1/schedules/{schedule_id}"]["put"]["requestBody"]["content"]["application/json"];

/** The next fire times of a trigger. The query fails if the trigger is invalid. `asked` null: no request. */
export function previewOf(asked: PreviewAsked | null) {
  return queryOptions({
    queryKey: ["preview", asked],
    queryFn: ({ signal }) =>
      ask(api.POST("/api/v1/schedules/preview", { body: asked as Schemas["PreviewAsked"], signal })),
    enabled: asked !== null,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    gcTime: 60_000,
  });
}

export const kinds = queryOptions({
  queryKey: ["kinds"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/kinds", { signal })),
  staleTime: 300_000,
});

/** Task functions whose name or description contains `q`. */
export function taskFunctionsLike(q: string) {
  return queryOptions({
    queryKey: ["task-functions", "like", q],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/task-functions", { params: { query: { q, page_size: 50 } }, signal })),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
}

export function taskFunction(name: string) {
  return queryOptions({
    queryKey: ["task-functions", name],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/task-functions/{name}", { params: { path: { name } }, signal })),
    enabled: name !== "",
    staleTime: 30_000,
    retry: false,
  });
}

export const calendarNames = queryOptions({
  queryKey: ["calendars", "names"],
  queryFn: async ({ signal }) => {
    const found = await ask(api.GET("/api/v1/calendars", { params: { query: { page_size: 500 } }, signal }));
    return found.items.map((calendar) => calendar.name);
  },
  staleTime: 30_000,
});

export function useCreate() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ definition, reason }: { definition: Definition; reason: string }) =>
      ask(
        api.POST("/api/v1/schedules", {
          body: definition as Schemas["ScheduleSpec"],
          headers: { "Idempotency-Key": newKey(), ...becauseOf(reason) },
        }),
      ),
    onSuccess: (made) => remember(client, made),
  });
}

/** Replace a schedule. The server answers 412 if the schedule has another version by now. */
export function useReplace() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (asked: { id: string; definition: Definition; version: number; reason: string }) =>
      ask(
        api.PUT("/api/v1/schedules/{schedule_id}", {
          params: { path: { schedule_id: asked.id } },
          body: asked.definition as Replacement,
          headers: { "If-Match": `"${asked.version}"`, ...becauseOf(asked.reason) },
        }),
      ),
    onSuccess: (made) => remember(client, made),
  });
}

function remember(client: ReturnType<typeof useQueryClient>, made: Schedule): void {
  client.setQueryData(["schedule", made.schedule_id], made);
  for (const queryKey of [["schedules", "list"], ["schedule"], ["status"], ["timeline"]]) {
    void client.invalidateQueries({ queryKey });
  }
}

/** The header with the reason. Characters outside ASCII become question marks. */
function becauseOf(reason: string): Record<string, string> {
  const told = reason.trim().replace(/[^\x20-\x7e]/g, "?");
  return told === "" ? {} : { "X-Foliot-Reason": told };
}
