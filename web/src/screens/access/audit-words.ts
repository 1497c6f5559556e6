// Audit records as text. Pure functions.

import type { AuditRecord } from "@/api/audit";
import type { Tone } from "@/ui/Badge";
import type { IconName } from "@/ui/Icon";

/** Actions that the server records, as `resource.verb`. */
export const ACTIONS = [
  "schedule.created",
  "schedule.edited",
  "schedule.paused",
  "schedule.resumed",
  "schedule.deleted",
  "schedule.triggered",
  "backfill.created",
  "backfill.cancelled",
  "execution.cancelled",
  "execution.retried",
  "queue.paused",
  "queue.resumed",
  "calendar.set",
  "calendar.deleted",
  "secret.set",
  "secret.deleted",
  "secret.rotated",
  "key.created",
  "key.revoked",
  "host.created",
  "task_function.changed",
  "notification_rule.created",
  "notification_rule.edited",
  "notification_rule.deleted",
  "notification_rule.tested",
  "notification.retried",
  "instance.drained",
  "instance.resumed",
  "cluster.resharded",
  "event_group.deleted",
  "event_relay.deleted",
  "event_relay.topic_deleted",
  "dead_letter.replayed",
  "dead_letter.deleted",
  "session.link_created",
  "session.created",
  "session.ended",
] as const;

export const RESOURCE_TYPES = [...new Set(ACTIONS.map((action) => action.split(".")[0] ?? ""))];

const VERB_LOOKS: Record<string, { tone: Tone; icon: IconName }> = {
  created: { tone: "good", icon: "plus" },
  set: { tone: "good", icon: "edit" },
  edited: { tone: "busy", icon: "edit" },
  changed: { tone: "busy", icon: "edit" },
  paused: { tone: "warn", icon: "pause" },
  resumed: { tone: "good", icon: "play" },
  triggered: { tone: "busy", icon: "play" },
  retried: { tone: "busy", icon: "retry" },
  replayed: { tone: "busy", icon: "retry" },
  tested: { tone: "busy", icon: "send" },
  drained: { tone: "warn", icon: "pause" },
  resharded: { tone: "busy", icon: "cluster" },
  rotated: { tone: "busy", icon: "retry" },
  cancelled: { tone: "calm", icon: "stop" },
  ended: { tone: "calm", icon: "leave" },
  deleted: { tone: "bad", icon: "trash" },
  revoked: { tone: "bad", icon: "stop" },
};

/** Verb, colour and icon of an action. Sessions are shown as "signed in" and "signed out". */
export function actionLooks(action: string): { verb: string; tone: Tone; icon: IconName } {
  if (action === "session.created") return { verb: "signed in", tone: "calm", icon: "person" };
  if (action === "session.link_created") return { verb: "made a sign-in link", tone: "calm", icon: "person" };
  if (action === "event_relay.topic_deleted") return { verb: "gave up a topic", tone: "bad", icon: "trash" };
  if (action === "session.ended") return { verb: "signed out", tone: "calm", icon: "leave" };
  const verb = action.split(".")[1] ?? action;
  return { verb, ...(VERB_LOOKS[verb] ?? { tone: "calm", icon: "form" }) };
}

export function typeWords(type: string): string {
  return type.replaceAll("_", " ");
}

/** The resource's name at that time, else its id. */
export function nameOfResource(record: Pick<AuditRecord, "before" | "after" | "resource_id">): string {
  for (const side of [record.after, record.before]) {
    const name = (side as { name?: unknown } | null)?.name;
    if (typeof name === "string" && name !== "") return name;
  }
  return record.resource_id;
}

/** Link to the changed resource. Null: it has no page. */
export function addressOfResource(type: string, id: string): string | null {
  switch (type) {
    case "schedule":
      return `/schedules/${encodeURIComponent(id)}`;
    case "notification_rule":
      return `/notifications/rules?rule=${encodeURIComponent(id)}`;
    case "execution":
      return `/executions/${encodeURIComponent(id)}`;
    case "queue":
      return "/cluster/queues";
    case "task_function":
      return `/cluster/tasks/${encodeURIComponent(id)}`;
    case "calendar":
      return `/access/calendars?${new URLSearchParams({ calendar: id })}`;
    case "key":
      return `/access/keys?${new URLSearchParams({ q: id })}`;
    case "secret":
      return "/access/secrets";
    case "host":
      return "/access/hosts";
    default:
      return null;
  }
}

/** Convert an instant to the value of a `datetime-local` input. Empty: none. `asInstant` converts back. */
export function asLocal(instant: string): string {
  const at = new Date(instant);
  if (instant === "" || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function asInstant(local: string): string {
  const at = new Date(local);
  return local === "" || Number.isNaN(at.getTime()) ? "" : at.toISOString();
}
