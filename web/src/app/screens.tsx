// Which screen is at which address. Each is loaded when it is first needed.

import { lazy, type ReactNode } from "react";
import { matchPath, type Parameters } from "@/routing/match";
import { NotHere, Placeholder } from "@/screens/Placeholder";

const Overview = lazy(() => import("@/screens/overview"));
const Schedules = lazy(() => import("@/screens/schedules"));
const Executions = lazy(() => import("@/screens/executions"));
const Execution = lazy(() => import("@/screens/execution"));
const Timeline = lazy(() => import("@/screens/timeline"));

interface Entry {
  path: string;
  /** Addresses with the same one share a screen: it stays while a panel over it opens and closes. */
  key: string;
  show: (parameters: Parameters) => ReactNode;
}

const ENTRIES: readonly Entry[] = [
  { path: "/", key: "overview", show: () => <Overview /> },
  { path: "/schedules", key: "schedules", show: () => <Schedules openId={null} /> },
  {
    path: "/schedules/new",
    key: "new schedule",
    show: () => (
      <Placeholder
        title="New schedule"
        commands={['foliot schedule create nightly-report --cron "0 2 * * *" …']}
      />
    ),
  },
  { path: "/schedules/:id", key: "schedules", show: ({ id }) => <Schedules openId={id ?? null} /> },
  { path: "/executions", key: "executions", show: () => <Executions /> },
  { path: "/executions/:id", key: "execution", show: ({ id }) => <Execution id={id ?? ""} /> },
  { path: "/timeline", key: "timeline", show: () => <Timeline /> },
  {
    path: "/cluster",
    key: "cluster",
    show: () => <Placeholder title="Cluster" commands={["foliot instance list", "foliot queue list"]} />,
  },
  {
    path: "/access",
    key: "access",
    show: () => (
      <Placeholder title="Access" commands={["foliot key list", "foliot key create NAME --role viewer"]} />
    ),
  },
];

export function screenOf(path: string): { key: string; element: ReactNode } {
  for (const entry of ENTRIES) {
    const parameters = matchPath(entry.path, path);
    if (parameters !== null) {
      return { key: entry.key, element: entry.show(parameters) };
    }
  }
  return { key: "not here", element: <NotHere /> };
}
