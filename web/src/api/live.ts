// What the stream tells, put into what is on the page. Rows change in place; whether one is new, gone or in
// another order is for the next reading, and shown when the reader wants it (see ui/steady.ts).

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { Rereading } from "./rereading";
import { ScheduleRows } from "./schedule-rows";
import { keepWhileShown } from "./shown";
import { type ExecutionTold, type Liveness, type StatusTold, Stream, type Told } from "./stream";
import { type ClusterStatus, isOpen, type ListedSchedule, type RecentExecution } from "./types";

const MAX_RECENT = 20;
/** Between two readings while the stream does not report. */
const POLL_MS = 15_000;

interface Page {
  items: ListedSchedule[];
  next_page_token: string;
}

/** A schedule after something happened to one of its executions. */
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

/** The figures after the stream told new ones. */
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

/** Whether the page is kept up to date. */
export function useLiveness(): Liveness {
  return useSyncExternalStore(
    (listener) => {
      livenessListeners.add(listener);
      return () => livenessListeners.delete(listener);
    },
    () => liveness,
  );
}

/** For screens with something of their own to keep up to date; `listener` must be the same between renders. */
export function useTold(listener: (told: Told) => void): void {
  useEffect(() => {
    toldListeners.add(listener);
    return () => {
      toldListeners.delete(listener);
    };
  }, [listener]);
}

/** Keeps all that is on the page up to date; used once, by the shell. */
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
        // Whether the server is gone, or only the stream, shows with the next answer.
        if (now !== "live") void client.invalidateQueries({ queryKey: ["status"] });
        // The stream ends with the session: who is signed in shows whether it did.
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
