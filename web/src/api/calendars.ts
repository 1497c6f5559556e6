// Calendars: named sets of days on which nothing fires.

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ask, given } from "./client";
import { tokenAfter } from "./pages";
import { because } from "./reason";
import type { components } from "./schema";

export type Calendar = components["schemas"]["CalendarDocument"];
export type CalendarSpec = components["schemas"]["CalendarSpec"];
type CalendarFile = components["schemas"]["CalendarFile"];

export const calendarList = infiniteQueryOptions({
  queryKey: ["calendars", "list"],
  queryFn: ({ pageParam, signal }) =>
    ask(
      api.GET("/api/v1/calendars", { params: { query: { page_size: 100, page_token: pageParam } }, signal }),
    ),
  initialPageParam: "",
  getNextPageParam: tokenAfter,
});

export function calendar(name: string) {
  return queryOptions({
    queryKey: ["calendars", "one", name],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/calendars/{name}", { params: { path: { name } }, signal })),
  });
}

/** Create a calendar, or replace it if `replaces`. The server refuses to create a name that exists. */
export function useSetCalendar() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ spec, replaces }: { spec: CalendarSpec; replaces: boolean }) =>
      replaces
        ? ask(api.PUT("/api/v1/calendars/{name}", { params: { path: { name: spec.name } }, body: spec }))
        : ask(api.POST("/api/v1/calendars", { body: spec })),
    onSettled: () => client.invalidateQueries({ queryKey: ["calendars"] }),
  });
}

export function useImportCalendar() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (file: Pick<CalendarFile, "name" | "ical"> & Partial<CalendarFile>) =>
      ask(api.POST("/api/v1/calendars/import", { body: given<CalendarFile>(file) })),
    onSettled: () => client.invalidateQueries({ queryKey: ["calendars"] }),
  });
}

export function useDeleteCalendar() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, reason }: { name: string; reason: string }) =>
      ask(api.DELETE("/api/v1/calendars/{name}", { params: { path: { name } }, headers: because(reason) })),
    onSettled: () => client.invalidateQueries({ queryKey: ["calendars", "list"] }),
  });
}

/** The first 8 schedules that use a calendar. */
export function schedulesWith(name: string) {
  return queryOptions({
    queryKey: ["schedules", "with calendar", name],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/schedules", { params: { query: { calendar: [name], page_size: 8 } }, signal })),
  });
}
