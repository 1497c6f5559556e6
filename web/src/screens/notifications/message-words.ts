// Messages as text. Pure functions.

import type { Delivery, Message, MessageType } from "@/api/notifications";
import type { Tone } from "@/ui/Badge";
import type { IconName } from "@/ui/Icon";

export const TYPE_LOOKS: Record<MessageType, { words: string; icon: IconName }> = {
  "schedule.failed": { words: "Failed", icon: "crossCircle" },
  "schedule.failing": { words: "Failed again and again", icon: "warning" },
  "schedule.recovered": { words: "Recovered", icon: "checkCircle" },
  "schedule.did_not_run": { words: "No success for too long", icon: "question" },
  "schedule.sla_missed": { words: "Started too late", icon: "hourglass" },
  "schedules.gathered": { words: "Many at once", icon: "warning" },
  test: { words: "Test", icon: "send" },
};

export const DELIVERY_LOOKS: Record<Delivery, Look> = {
  pending: { words: "on its way", tone: "busy", icon: "clock" },
  delivered: { words: "delivered", tone: "good", icon: "checkCircle" },
  dead: { words: "given up", tone: "bad", icon: "crossCircle" },
};

interface Look {
  words: string;
  tone: Tone;
  icon: IconName;
}

/** Delivery state as text, colour and icon. A pending message with an error is shown as a retry. */
export function lookOf({ status, error }: Pick<Message, "status" | "error">): Look {
  return status === "pending" && error !== null
    ? { words: "trying again", tone: "warn", icon: "retry" }
    : DELIVERY_LOOKS[status];
}

/** Number of schedules in a message that groups several. Null: the message does not group schedules. */
export function countIn({ type, message }: Pick<Message, "type" | "message">): number | null {
  const count = partOf(message.data, "count");
  return type === "schedules.gathered" && typeof count === "number" ? count : null;
}

/** The schedule's name when the message was sent. Null: the message concerns no schedule, or several. */
export function scheduleNameIn({
  message,
  schedule_id,
}: Pick<Message, "message" | "schedule_id">): string | null {
  if (schedule_id === null) return null;
  const name = partOf(partOf(message.data, "schedule"), "name");
  return typeof name === "string" && name !== "" ? name : `schedule ${schedule_id.slice(0, 8)}…`;
}

/** Id of the execution in the message. Null: none. */
export function executionIn({ message }: Pick<Message, "message">): string | null {
  const id = partOf(partOf(message.data, "execution"), "execution_id");
  return typeof id === "string" ? id : null;
}

function partOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** "1 try", "3 tries". */
export function triesWords(attempts: number): string {
  return attempts === 1 ? "1 try" : `${attempts} tries`;
}
