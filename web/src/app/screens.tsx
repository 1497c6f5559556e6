// Routes: which screen is at which address. Each screen's code is loaded on first use.

import { lazy, type ReactNode } from "react";
import { matchPath, type Parameters } from "@/routing/match";
import { NotHere } from "@/screens/not-here";

const About = lazy(() => import("@/screens/about"));
const Access = lazy(() => import("@/screens/access"));
const Cluster = lazy(() => import("@/screens/cluster"));
const Notifications = lazy(() => import("@/screens/notifications"));
const Overview = lazy(() => import("@/screens/overview"));
const Schedule = lazy(() => import("@/screens/schedule"));
const Schedules = lazy(() => import("@/screens/schedules"));
const Executions = lazy(() => import("@/screens/executions"));
const Execution = lazy(() => import("@/screens/execution"));
const Timeline = lazy(() => import("@/screens/timeline"));

interface Entry {
  path: string;
  /** Addresses with the same key share a screen. It stays mounted while a panel over it opens and closes. */
  key: string;
  show: (parameters: Parameters) => ReactNode;
}

const ENTRIES: readonly Entry[] = [
  { path: "/", key: "overview", show: () => <Overview /> },
  { path: "/schedules", key: "schedules", show: () => <Schedules isNew={false} /> },
  { path: "/schedules/new", key: "schedules", show: () => <Schedules isNew /> },
  { path: "/schedules/:id", key: "schedule", show: ({ id }) => <Schedule key={id} id={id ?? ""} /> },
  { path: "/executions", key: "executions", show: () => <Executions /> },
  { path: "/executions/:id", key: "execution", show: ({ id }) => <Execution id={id ?? ""} /> },
  { path: "/timeline", key: "timeline", show: () => <Timeline /> },
  { path: "/notifications", key: "notifications", show: () => <Notifications tab={null} /> },
  {
    path: "/notifications/:tab",
    key: "notifications",
    show: ({ tab }) => <Notifications tab={tab ?? null} />,
  },
  { path: "/cluster", key: "cluster", show: () => <Cluster tab={null} openId={null} /> },
  { path: "/cluster/:tab", key: "cluster", show: ({ tab }) => <Cluster tab={tab ?? null} openId={null} /> },
  {
    path: "/cluster/:tab/:id",
    key: "cluster",
    show: ({ tab, id }) => <Cluster tab={tab ?? null} openId={id ?? null} />,
  },
  { path: "/access", key: "access", show: () => <Access tab={null} /> },
  { path: "/access/:tab", key: "access", show: ({ tab }) => <Access tab={tab ?? null} /> },
  { path: "/about", key: "about", show: () => <About /> },
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
