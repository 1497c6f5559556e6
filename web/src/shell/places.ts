import type { IconName } from "@/ui/Icon";

export interface PlaceToGo {
  path: string;
  name: string;
  icon: IconName;
}

export const PLACES: readonly PlaceToGo[] = [
  { path: "/", name: "Overview", icon: "overview" },
  { path: "/schedules", name: "Schedules", icon: "schedules" },
  { path: "/executions", name: "Executions", icon: "executions" },
  { path: "/timeline", name: "Timeline", icon: "timeline" },
  { path: "/notifications", name: "Notifications", icon: "bell" },
  { path: "/cluster", name: "Cluster", icon: "cluster" },
  { path: "/access", name: "Access", icon: "access" },
];

export function isAt(place: PlaceToGo, path: string): boolean {
  return place.path === "/" ? path === "/" : path === place.path || path.startsWith(`${place.path}/`);
}
