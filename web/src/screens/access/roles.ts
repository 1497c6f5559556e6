// Descriptions of roles. Each role includes the permissions of the roles before it.

import type { Role } from "@/api/types";
import type { Tone } from "@/ui/Badge";
import type { IconName } from "@/ui/Icon";

export const ROLE_LOOKS: Record<Role, { tone: Tone; icon: IconName }> = {
  viewer: { tone: "calm", icon: "screen" },
  operator: { tone: "busy", icon: "play" },
  editor: { tone: "good", icon: "edit" },
  admin: { tone: "odd", icon: "access" },
};

export const ROLE_WORDS: Record<Role, string> = {
  viewer: "Sees schedules, executions, the cluster and calendars.",
  operator: "Also triggers, pauses and resumes, retries and cancels.",
  editor: "Also makes, edits and deletes schedules, calendars and notification rules.",
  admin: "Also manages keys and secrets, and reads the audit.",
};

/** Permissions, each with the lowest role that has it. */
export const ABILITIES: readonly (readonly [what: string, needed: Role | "operator's key"])[] = [
  ["See schedules, executions, logs and the timeline", "viewer"],
  ["See instances, queues, task functions and calendars", "viewer"],
  ["Trigger, pause and resume schedules; backfill", "operator"],
  ["Retry and cancel executions; send notifications again", "operator"],
  ["Pause and resume queues", "operator"],
  ["Make, edit and delete schedules", "editor"],
  ["Make, import and delete calendars", "editor"],
  ["Make, edit, test and delete notification rules", "editor"],
  ["Make and revoke keys", "admin"],
  ["Set and delete secrets", "admin"],
  ["Read the audit", "admin"],
  ["Make hosts; switch task functions; encrypt secrets anew", "operator's key"],
];
