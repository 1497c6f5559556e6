// URL parameters shared by the panel and the page of a schedule.

import { STATUSES } from "@/api/types";
import { useLocation } from "@/routing/location";
import { anyOf, oneOf, text, type Values, writeSearch } from "@/routing/search";

export const TABS = ["summary", "fires", "executions", "versions", "code"] as const;
export type Tab = (typeof TABS)[number];

export const CODES = ["cli", "yaml", "python", "curl"] as const;
export type CodeKind = (typeof CODES)[number];

/** Dialogs that can be open over a schedule. Empty: none. */
export const ACTS = ["", "edit", "run", "backfill"] as const;
export type Act = (typeof ACTS)[number];

export const viewShape = {
  tab: oneOf(TABS, "summary"),
  do: oneOf(ACTS, ""),
  version: text(),
  against: text(),
  status: anyOf(STATUSES),
  as: oneOf(CODES, "cli"),
};

/** Parameters of the list. `open`: the schedule in the panel. `like`: the one that a new schedule copies. */
export const panelShape = { ...viewShape, open: text(), like: text() };

const CLOSED: Values<typeof panelShape> = {
  tab: "summary",
  do: "",
  version: "",
  against: "",
  status: [],
  as: "cli",
  open: "",
  like: "",
};

/** URL of the list with a panel open, or with none. Other parameters are kept. */
export function panelAddress(
  search: string,
  changes: Partial<Values<typeof panelShape>>,
  path = "/schedules",
): string {
  return path + writeSearch(panelShape, search, { ...CLOSED, ...changes });
}

export function pageAddress(id: string, changes: Partial<Values<typeof viewShape>> = {}): string {
  return `/schedules/${encodeURIComponent(id)}${writeSearch(viewShape, "", changes)}`;
}

/** URL for an action on a schedule: over the list if the reader is there, else on the schedule's page. */
export function useActAddress(): (id: string, act: Act) => string {
  const { path, search } = useLocation();
  return (id, act) =>
    path === "/schedules" ? panelAddress(search, { open: id, do: act }) : pageAddress(id, { do: act });
}
