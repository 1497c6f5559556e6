// Notification rules as text. Pure functions.

import type { Address, Condition, Rule } from "@/api/notifications";
import { lengthWords } from "@/screens/schedule-form/sentences";
import type { Tone } from "@/ui/Badge";
import type { IconName } from "@/ui/Icon";

export type ConditionKind = Condition["kind"];

/** A condition as a verb phrase about the schedule: "fails", "recovers". */
export function conditionWords(condition: Condition): string {
  switch (condition.kind) {
    case "failure":
      return condition.every ? "fails, every time" : "fails";
    case "failures_in_a_row":
      return `fails ${condition.count} times in a row`;
    case "recovery":
      return "recovers";
    case "did_not_run":
      return typeof condition.within_seconds === "number"
        ? `no success for ${lengthWords(condition.within_seconds)}`
        : `no success ${lengthWords(condition.grace_seconds ?? 0)} after a due time`;
    case "sla_miss":
      return "starts too late";
  }
}

const ORDER: readonly ConditionKind[] = [
  "failure",
  "failures_in_a_row",
  "did_not_run",
  "sla_miss",
  "recovery",
];

/** All conditions of a rule: "fails; recovers". Failures first, recovery last. */
export function conditionsWords(on: readonly Condition[]): string {
  const rank = (condition: Condition) => ORDER.indexOf(condition.kind);
  return [...on]
    .sort((a, b) => rank(a) - rank(b))
    .map(conditionWords)
    .join("; ");
}

export const DESTINATION_WORDS: Record<Address["kind"], string> = { webhook: "Webhook", slack: "Slack" };

/** Host and port of a URL. The rest is left out: it may contain credentials. */
export function hostOf(url: string): string {
  const read = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url);
  const authority = read?.[1] ?? "";
  return authority.slice(authority.lastIndexOf("@") + 1) || "an address that can't be read";
}

const SECRET = /^\$\{secret:([^}]*)\}$/;

export function secretName(reference: string): string {
  return SECRET.exec(reference)?.[1] ?? "";
}

export function referenceTo(name: string): string {
  return `\${secret:${name}}`;
}

export type RuleState = "enabled" | "muted" | "disabled";

export function ruleStateOf(rule: Pick<Rule, "enabled" | "muted_until_ts">, now: Date): RuleState {
  if (!rule.enabled) return "disabled";
  const until = rule.muted_until_ts;
  return typeof until === "string" && Date.parse(until) > now.getTime() ? "muted" : "enabled";
}

export const RULE_LOOKS: Record<RuleState, { tone: Tone; icon: IconName }> = {
  enabled: { tone: "good", icon: "check" },
  muted: { tone: "warn", icon: "mute" },
  disabled: { tone: "calm", icon: "stop" },
};

interface Subject {
  schedule_id: string;
  name: string;
  labels?: Record<string, string>;
}

/** Whether a rule applies to a schedule. Mirrors the server's logic. */
export function isAbout(
  { match }: Pick<Rule, "match">,
  { schedule_id, name, labels = {} }: Subject,
): boolean {
  const named = match.schedules;
  if (named.length > 0 && !named.includes(name) && !named.includes(schedule_id)) {
    return false;
  }
  return Object.entries(match.labels ?? {}).every(
    ([label, value]) => Object.hasOwn(labels, label) && labels[label] === value,
  );
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the text is a schedule id. Rules refer to schedules by id, which survives a rename, or by name. */
export function isId(named: string): boolean {
  return ID.test(named);
}
