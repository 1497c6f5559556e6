// The stream of changes. A browser reconnects by itself when a connection breaks, and tells the server where it
// was. It gives up when it is answered with an error: then it is tried anew here, ever less often, and the
// caller is told to read everything again, since what happened in between is not known.

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
  /** Of open executions; null: too many to count. */
  counts: Partial<Record<Status, number>> | null;
  leaders: string[];
}

export type Told =
  | { kind: "execution"; data: ExecutionTold }
  | { kind: "schedule"; data: ScheduleTold }
  | { kind: "status"; data: StatusTold }
  /** Something was missed: read the lists again. */
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
        // It comes back by itself, and has missed nothing then.
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

  /** Until it is started again, which tells that something was missed. */
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
