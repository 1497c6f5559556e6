// Parts of a schedule as short text. Pure functions.

import type { ListedSchedule, Target, Trigger } from "@/api/types";
import type { IconName } from "@/ui/Icon";

/** Time zone of a trigger. Null: it has none. */
export function zoneOf(trigger: Trigger): string | null {
  return "timezone" in trigger ? trigger.timezone : null;
}

/** Time zone to show. Null for intervals of hours or less: they are the same in every zone. */
export function shownZoneOf(trigger: Trigger): string | null {
  const isElapsed =
    trigger.kind === "interval" && ["SECONDS", "MINUTES", "HOURS"].includes(trigger.frequency_unit);
  return isElapsed ? null : zoneOf(trigger);
}

/** Description of the trigger without its zone, which is shown separately. */
export function whenOf(schedule: Pick<ListedSchedule, "trigger" | "trigger_description">): string {
  const zone = zoneOf(schedule.trigger);
  const words = schedule.trigger_description;
  return zone !== null && words.endsWith(` (${zone})`) ? words.slice(0, -zone.length - 3) : words;
}

/** The trigger as the user wrote it. */
export function expressionOf(trigger: Trigger): string {
  switch (trigger.kind) {
    case "cron":
      return trigger.expression;
    case "rrule":
      return trigger.rule;
    case "interval":
      return "interval";
    case "once":
      return "once";
    case "delay":
      return "delay";
  }
}

export function targetOf(target: Target): string {
  switch (target.kind) {
    case "function":
      return target.name;
    case "http":
      return `${target.method} ${target.url.replace(/^https?:\/\//, "")}`;
    case "event":
      return `${target.event_topic} ${target.event_type}`;
    case "celery":
      return target.task;
  }
}

export const TARGET_ICONS: Record<Target["kind"], IconName> = {
  function: "function",
  http: "http",
  event: "event",
  celery: "celery",
};

/** Why a schedule can't be paused or resumed here. Null: it can. */
export function whyFixed(schedule: Pick<ListedSchedule, "active" | "state" | "paused">): string | null {
  if (!schedule.active) {
    return "Inactive by its definition: change the definition to switch it on.";
  }
  return schedule.state === "completed" && !schedule.paused ? "Completed: it has no further times." : null;
}
