// The stream of changes (server-sent events). When a connection breaks, the browser reconnects by itself and
// sends the id of the last event. It gives up when the server answers with an error. Then this module retries
// with exponential backoff, and emits `reset` so that the caller refetches everything: events were missed.

import { base } from "@/routing/base";
import type { Status } from "./types";

export interface ExecutionTold {
  execution_id: string;
  schedule_id: string;
  schedule_name: string | null;
  status: Status;
  attempt: number;
  progress: Record<string, unknown> | null;
  fire_ts: string;
  started_ts: string | null;
  ended_ts: string | null;
  duration_seconds: number | null;
}

export interface ScheduleTold {
  schedule_id: string;
  name: string;
  change: "created" | "edited" | "paused" | "resumed" | "deleted";
  aggregate_version: number;
}

export interface StatusTold {
  /** Number of open executions per status; null: too many to count. */
  counts: Partial<Record<Status, number>> | null;
  leaders: string[];
}

export type Told =
  | { kind: "execution"; data: ExecutionTold }
  | { kind: "schedule"; data: ScheduleTold }
  | { kind: "status"; data: StatusTold }
  /** Events were missed: refetch everything. */
  | { kind: "reset" };

export type Liveness = "connecting" | "live" | "broken";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

export class Stream {
  liveness: Liveness = "connecting";
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;

  constructor(
    private readonly tell: (told: Told) => void,
    private readonly onLiveness: (liveness: Liveness) => void,
    private readonly open: () => EventSource = () => new EventSource(`${base}/api/v1/stream`),
  ) {}

  start(): void {
    if (this.source !== null) return;
    const source = this.open();
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      if (this.liveness === "broken") this.tell({ kind: "reset" });
      this.become("live");
    };
    source.onerror = () => {
      if (source.readyState !== source.CLOSED) {
        // The browser reconnects by itself and misses no events.
        this.become("connecting");
        return;
      }
      this.close();
      this.become("broken");
      this.failures += 1;
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.failures - 1), LONGEST_PAUSE_MS);
      this.timer = setTimeout(() => this.start(), pause * (0.75 + Math.random() / 2));
    };
    for (const kind of ["execution", "schedule", "status"] as const) {
      source.addEventListener(kind, (event) => {
        this.tell({ kind, data: JSON.parse((event as MessageEvent<string>).data) } as Told);
      });
    }
    source.addEventListener("reset", () => this.tell({ kind: "reset" }));
  }

  /** Close the stream until the next start, which emits `reset`. */
  stop(): void {
    clearTimeout(this.timer);
    this.close();
    this.liveness = "broken";
  }

  private close(): void {
    this.source?.close();
    this.source = null;
  }

  private become(liveness: Liveness): void {
    if (liveness !== this.liveness) {
      this.liveness = liveness;
      this.onLiveness(liveness);
    }
  }
}
