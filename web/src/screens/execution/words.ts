// Parts of an execution as short text. Pure functions.

import type { TriggeredBy } from "@/api/execution-list";
import { type Execution, isOpen } from "@/api/types";
import type { IconName } from "@/ui/Icon";
import { secondsBetween } from "./life";

export const TRIGGER_LOOKS: Record<TriggeredBy, { icon: IconName; words: string }> = {
  scheduler: { icon: "clock", words: "scheduled" },
  manual: { icon: "person", words: "by hand" },
  api: { icon: "code", words: "by the API" },
  backfill: { icon: "retry", words: "backfill" },
};

/** What triggered the execution, and who, if it was a person. */
export function triggerOf(known: Pick<Execution, "triggered_by" | "triggered_by_user">): string {
  const { words } = TRIGGER_LOOKS[known.triggered_by];
  return known.triggered_by_user ? `${words}, ${known.triggered_by_user}` : words;
}

const REASONS: Record<string, string> = {
  overlap: "An earlier run was still going on.",
  misfire: "It was too late to run it.",
  window: "Outside of the schedule's window.",
  calendar: "A calendar holds it back.",
  paused: "The schedule was paused.",
  inactive: "The schedule was inactive.",
  deleted: "The schedule was deleted.",
  error: "The schedule could not be planned.",
};

/** Text for a reason code: why an execution was skipped, or how it ended. */
export function reasonOf(reason: string): string {
  return REASONS[reason] ?? reason;
}

const MAX_LETTERS = 200;

/** Outcome in one line. Empty: nothing to report. */
export function outcomeOf(known: Execution): string {
  const words = known.error ?? (known.reason === null ? null : reasonOf(known.reason));
  if (words) {
    return words.split("\n", 1)[0] ?? "";
  }
  if (isOpen(known.status)) {
    return progressOf(known)?.text ?? "";
  }
  if (known.result === null || known.result === undefined) {
    return "";
  }
  const text = typeof known.result === "string" ? known.result : JSON.stringify(known.result);
  return text.slice(0, MAX_LETTERS);
}

export interface Progress {
  /** 0 to 1. Null: not reported. */
  fraction: number | null;
  text: string;
}

/** Validate the progress that the task reported: it may be any value. */
export function progressOf({ progress }: Pick<Execution, "progress">): Progress | null {
  if (progress === null) {
    return null;
  }
  const { fraction, text } = progress;
  const isFraction = typeof fraction === "number" && Number.isFinite(fraction);
  return {
    fraction: isFraction ? Math.min(1, Math.max(0, fraction)) : null,
    text: typeof text === "string" ? text : "",
  };
}

/** Seconds from fire time to first start. Null: not started, a backfill, or retried (first start unknown). */
export function lateness(known: Execution): number | null {
  if (known.started_ts === null || known.attempt !== 1 || known.triggered_by === "backfill") {
    return null;
  }
  return secondsBetween(known.fire_ts, known.started_ts);
}

/** Why it can't be retried. Null: it can. */
export function whyNotRetry({ status }: Pick<Execution, "status">): string | null {
  if (isOpen(status)) return "It has not ended yet.";
  if (status === "success") return "It has succeeded.";
  return status === "skipped" ? "It was skipped: run the schedule instead." : null;
}

/** Why it can't be cancelled; null: it can. */
export function whyNotCancel(known: Pick<Execution, "status" | "cancel_requested">): string | null {
  if (!isOpen(known.status)) return "It has ended.";
  return known.cancel_requested ? "It is being cancelled." : null;
}
