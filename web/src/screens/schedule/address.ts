// Where the reader is within a schedule: the part of the address that its panel and its page share.

import { STATUSES } from "@/api/types";
import { useLocation } from "@/routing/location";
import { anyOf, oneOf, text, type Values, writeSearch } from "@/routing/search";

export const TABS = ["summary", "fires", "executions", "versions", "code"] as const;
export type Tab = (typeof TABS)[number];

export const CODES = ["cli", "yaml", "python", "curl"] as const;
export type CodeKind = (typeof CODES)[number];

/** What is open over it. */
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

/** The list's own: whose panel is open over it, and after which a new one is made. */
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

/** The list as it is, with a panel open, or none. */
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

/** Where something about a schedule is done: over the list for those who are there, else on its page. */
export function useActAddress(): (id: string, act: Act) => string {
  const { path, search } = useLocation();
  return (id, act) =>
    path === "/schedules" ? panelAddress(search, { open: id, do: act }) : pageAddress(id, { do: act });
}
