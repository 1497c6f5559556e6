// Duration of a rule's mute. Pure functions.

export const SPANS = ["1", "8", "24", "time"] as const;
export type Span = (typeof SPANS)[number];

export const SPAN_WORDS: Record<Span, string> = {
  "1": "1 h",
  "8": "8 h",
  "24": "24 h",
  time: "Until a time",
};

const HOUR_MS = 3_600_000;

/** End of the mute. Null: no time entered yet, or it is in the past. `local` is a `datetime-local` value. */
export function mutedUntil(span: Span, local: string, now: Date): string | null {
  const at = span === "time" ? new Date(local) : new Date(now.getTime() + Number(span) * HOUR_MS);
  return Number.isNaN(at.getTime()) || at <= now ? null : at.toISOString();
}
