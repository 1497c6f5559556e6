// Applies stream events to the cached data. Rows change in place. New, removed and reordered rows come with
// the next fetch, and are shown when the user asks for them (see ui/steady.ts).

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { Rereading } from "./rereading";
import { ScheduleRows } from "./schedule-rows";
import { keepWhileShown } from "./shown";
import { type ExecutionTold, type Liveness, type StatusTold, Stream, type Told } from "./stream";
import { type ClusterStatus, isOpen, type ListedSchedule, type RecentExecution } from "./types";

const MAX_RECENT = 20;
/** Polling interval while the stream is not connected. */
const POLL_MS = 15_000;

interface Page {
  items: ListedSchedule[];
  next_page_token: string;
}

/** Apply an execution event to the row of its schedule. */
export function withExecution(row: ListedSchedule, told: ExecutionTold): ListedSchedule {
  const changed = { ...row, recent: row.recent ? withRecent(row.recent, told) : row.recent };
  const began = told.started_ts ?? told.fire_ts;
  const isLatest = !row.last_run_ts || Date.parse(began) >= Date.parse(row.last_run_ts);
  if (isOpen(told.status) || told.status === "skipped" || !isLatest) {
    return changed;
  }
  return { ...changed, last_status: told.status, last_execution_id: told.execution_id, last_run_ts: began };
}

function withRecent(known: readonly RecentExecution[], told: ExecutionTold): RecentExecution[] {
  const entry: RecentExecution = {
    execution_id: told.execution_id,
    status: told.status,
    fire_ts: told.fire_ts,
    duration_seconds: told.duration_seconds,
  };
  const at = known.findIndex((each) => each.execution_id === told.execution_id);
  if (at >= 0) {
    return known.with(at, entry);
  }
  const latestFirst = [entry, ...known].sort((a, b) => Date.parse(b.fire_ts) - Date.parse(a.fire_ts));
  return latestFirst.slice(0, MAX_RECENT);
}

/** Apply a status event to the cluster status. */
export function withStatus(status: ClusterStatus, told: StatusTold): ClusterStatus {
  if (told.counts === null) {
    return status;
  }
  return { ...status, executions: { ...status.executions, by_status: told.counts } };
}

function apply(client: QueryClient, told: Told): void {
  switch (told.kind) {
    case "execution":
      client.setQueriesData<InfiniteData<Page>>({ queryKey: ["schedules", "list"] }, (known) =>
        known === undefined ? known : withRow(known, told.data),
      );
      break;
    case "status":
      client.setQueryData<ClusterStatus>(["status"], (known) =>
        known === undefined ? known : withStatus(known, told.data),
      );
      break;
  }
}

function withRow(known: InfiniteData<Page>, told: ExecutionTold): InfiniteData<Page> {
  const holder = known.pages.findIndex((page) =>
    page.items.some((row) => row.schedule_id === told.schedule_id),
  );
  const page = known.pages[holder];
  if (page === undefined) {
    return known;
  }
  const items = page.items.map((row) =>
    row.schedule_id === told.schedule_id ? withExecution(row, told) : row,
  );
  return { ...known, pages: known.pages.with(holder, { ...page, items }) };
}

let liveness: Liveness = "connecting";
const livenessListeners = new Set<() => void>();
const toldListeners = new Set<(told: Told) => void>();

/** The state of the stream's connection. */
export function useLiveness(): Liveness {
  return useSyncExternalStore(
    (listener) => {
      livenessListeners.add(listener);
      return () => livenessListeners.delete(listener);
    },
    () => liveness,
  );
}

/** Call `listener` for each stream event. It must be the same function on every render. */
export function useTold(listener: (told: Told) => void): void {
  useEffect(() => {
    toldListeners.add(listener);
    return () => {
      toldListeners.delete(listener);
    };
  }, [listener]);
}

/** Keep all cached data up to date. Used once, by the shell. */
export function useLive(): void {
  const client = useQueryClient();
  useEffect(() => {
    const rereading = new Rereading(client);
    const rows = new ScheduleRows(client);
    const stream = new Stream(
      (told) => {
        apply(client, told);
        rereading.add(told);
        if (told.kind === "execution" || told.kind === "schedule") rows.add(told.data.schedule_id);
        for (const listener of toldListeners) listener(told);
      },
      (now) => {
        liveness = now;
        for (const listener of livenessListeners) listener();
        // This request shows whether the server is gone, or only the stream.
        if (now !== "live") void client.invalidateQueries({ queryKey: ["status"] });
        // The stream also breaks when the session ends: check whether the user is still signed in.
        if (now === "broken") void client.invalidateQueries({ queryKey: ["me"] });
      },
    );
    const end = keepWhileShown(stream);
    const poll = setInterval(() => {
      if (liveness !== "live" && document.visibilityState === "visible") rereading.add({ kind: "reset" });
    }, POLL_MS);
    return () => {
      end();
      clearInterval(poll);
      rereading.stop();
      rows.stop();
    };
  }, [client]);
}
