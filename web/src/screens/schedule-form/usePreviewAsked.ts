import { useEffect, useMemo, useState } from "react";
import { given } from "@/api/client";
import type { Definition, PreviewAsked } from "@/api/schedule-editing";
import { triggerKind } from "@/kinds";

const TYPING_MS = 300;
/** With problems in these fields, no preview is requested. */
const DECISIVE = ["/trigger", "/start_ts", "/end_ts", "/jitter_seconds", "/window"];

/** Request for a preview of the fire times, debounced while typing. Null: nothing to request yet. */
export function usePreviewAsked(
  definition: Definition,
  problems: ReadonlyMap<string, string>,
  scheduleId: string | null,
): PreviewAsked | null {
  const isReadable = ![...problems.keys()].some((pointer) =>
    DECISIVE.some((each) => pointer === each || pointer.startsWith(`${each}/`)),
  );
  const text = isReadable ? JSON.stringify(askedOf(definition, scheduleId)) : null;
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    if (text === settled) return;
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, settled]);
  return useMemo(() => (settled === null ? null : (JSON.parse(settled) as PreviewAsked)), [settled]);
}

/** Build a preview request. `scheduleId` null: the schedule is not saved yet. */
export function askedOf(definition: Definition, scheduleId: string | null): PreviewAsked {
  const { trigger } = definition;
  // For times that do not depend on the schedule, a changed name causes no new request.
  const own = triggerKind(trigger.kind);
  const isHashed = own === null || (own.isHashed?.(trigger) ?? false);
  const name = definition.name.trim();
  return given<PreviewAsked>({
    trigger,
    n: 10,
    dst: definition.dst,
    window: definition.window,
    calendars: definition.calendars,
    start_ts: definition.start_ts,
    end_ts: definition.end_ts,
    jitter_seconds: definition.jitter_seconds,
    schedule_id: isHashed ? (scheduleId ?? undefined) : undefined,
    name: isHashed && scheduleId === null && name !== "" ? name : undefined,
  });
}
