// Refetches single rows of the schedule lists. The stream reports only a part of what an execution changes in
// its schedule's row. The rest, such as the next run, is fetched, but only for rows that are on the page.

import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { api, ask } from "./client";
import { RECENT } from "./schedules";
import type { ListedSchedule } from "./types";

const GATHER_MS = 300;
const GAP_MS = 3000;
const MAX_NAMES = 50;
/** Maximum length of the names in the URL: proxies refuse long URLs. */
const MAX_LENGTH = 4000;

interface Page {
  items: ListedSchedule[];
  next_page_token: string;
}

type Lists = InfiniteData<Page>;
const LISTS = { queryKey: ["schedules", "list"] };

type Read = (names: readonly string[]) => Promise<readonly ListedSchedule[]>;

async function readRows(names: readonly string[]): Promise<readonly ListedSchedule[]> {
  const query = { name: [...names], recent: RECENT, page_size: MAX_NAMES };
  return (await ask(api.GET("/api/v1/schedules", { params: { query } }))).items;
}

/** The first names, as many as fit into one request. */
export function portionOf(names: readonly string[]): readonly string[] {
  let length = 0;
  const fits = (name: string) => {
    length += encodeURIComponent(name).length + "&name=".length;
    return length <= MAX_LENGTH;
  };
  const portion = names.slice(0, MAX_NAMES);
  const end = portion.findIndex((name) => !fits(name));
  return end < 0 ? portion : portion.slice(0, Math.max(1, end));
}

/** Replace rows of a list. Returns the same object if the list has none of them. */
export function withRows(known: Lists, rows: ReadonlyMap<string, ListedSchedule>): Lists {
  let isChanged = false;
  const pages = known.pages.map((page) => {
    if (!page.items.some((row) => rows.has(row.schedule_id))) return page;
    isChanged = true;
    return { ...page, items: page.items.map((row) => rows.get(row.schedule_id) ?? row) };
  });
  return isChanged ? { ...known, pages } : known;
}

export class ScheduleRows {
  private readonly wanted = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readAt = Number.NEGATIVE_INFINITY;
  private isStopped = false;

  constructor(
    private readonly client: QueryClient,
    private readonly read: Read = readRows,
  ) {}

  /** Request a refetch of a row. Ignored if the row is not on the page. */
  add(scheduleId: string): void {
    this.wanted.add(scheduleId);
    this.plan();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private plan(): void {
    if (this.timer === undefined && this.wanted.size > 0 && !this.isStopped) {
      const wait = Math.max(GATHER_MS, this.readAt + GAP_MS - Date.now());
      this.timer = setTimeout(() => void this.step(), wait);
    }
  }

  private async step(): Promise<void> {
    this.readAt = Date.now();
    const named = this.onThePage();
    const portion = portionOf([...named.keys()]);
    this.wanted.clear();
    for (const name of [...named.keys()].slice(portion.length)) this.wanted.add(named.get(name) ?? "");
    try {
      if (portion.length > 0) {
        const rows = new Map((await this.read(portion)).map((row) => [row.schedule_id, row]));
        this.client.setQueriesData<Lists>(LISTS, (known) => known && withRows(known, rows));
      }
    } catch {
      // No retry: the next execution of the schedule requests the row again.
    } finally {
      this.timer = undefined;
      this.plan();
    }
  }

  /** Schedule ids by name, of the requested rows that are on the page. */
  private onThePage(): Map<string, string> {
    const found = new Map<string, string>();
    for (const query of this.client.getQueryCache().findAll({ ...LISTS, type: "active" })) {
      for (const page of (query.state.data as Lists | undefined)?.pages ?? []) {
        for (const row of page.items) {
          if (this.wanted.has(row.schedule_id)) found.set(row.name, row.schedule_id);
        }
      }
    }
    return found;
  }
}
