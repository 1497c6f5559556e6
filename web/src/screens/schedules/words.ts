// Parts of a schedule as short text. Pure functions.

import type { ListedSchedule, Trigger } from "@/api/types";

/** Time zone of a trigger. Null: it has none. */
export function zoneOf(trigger: Trigger): string | null {
  return typeof trigger.timezone === "string" ? trigger.timezone : null;
}

/** Description of the trigger without its zone, which is shown separately. */
export function whenOf(schedule: Pick<ListedSchedule, "trigger" | "trigger_description">): string {
  const zone = zoneOf(schedule.trigger);
  const words = schedule.trigger_description;
  return zone !== null && words.endsWith(` (${zone})`) ? words.slice(0, -zone.length - 3) : words;
}

/** Why a schedule can't be paused or resumed here. Null: it can. */
export function whyFixed(schedule: Pick<ListedSchedule, "active" | "state" | "paused">): string | null {
  if (!schedule.active) {
    return "Inactive by its definition: change the definition to switch it on.";
  }
  return schedule.state === "completed" && !schedule.paused ? "Completed: it has no further times." : null;
}
