// Draft of a rule: the values of the form's controls, and conversion from and to a rule. Pure functions.
//
// Values of a condition or destination are kept while it is switched off.

import type { Address, Condition, Rule, RuleSpec } from "@/api/notifications";
import { type Length, lengthOf, numberOf, secondsOf } from "@/screens/schedule-form/duration";
import type { Pair } from "@/screens/schedule-form/reader";
import { type ConditionKind, isId, referenceTo, secretName } from "./rule-words";

export interface RuleDraft {
  readonly name: string;
  readonly description: string;
  readonly schedules: readonly string[];
  readonly labels: readonly Pair[];
  readonly on: ReadonlySet<ConditionKind>;
  /** True: notify on every failure. False: only on the first. */
  readonly every: boolean;
  readonly count: string;
  readonly silence: "within" | "grace";
  readonly within: Length;
  readonly grace: Length;
  readonly kind: Address["kind"];
  readonly url: string;
  /** The name of the secret. */
  readonly secret: string;
}

const BLANK: RuleDraft = {
  name: "",
  description: "",
  schedules: [],
  labels: [],
  on: new Set<ConditionKind>(["failure", "recovery"]),
  every: false,
  count: "3",
  silence: "within",
  within: { amount: "1", unit: "d" },
  grace: { amount: "15", unit: "min" },
  kind: "webhook",
  url: "",
  secret: "",
};

/** A new rule for a schedule; for all of them if none is named. */
export function blankAbout(scheduleId: string): RuleDraft {
  return isId(scheduleId) ? { ...BLANK, schedules: [scheduleId] } : BLANK;
}

export function draftOf(rule: Rule): RuleDraft {
  const made: { -readonly [Name in keyof RuleDraft]: RuleDraft[Name] } = {
    ...BLANK,
    name: rule.name,
    description: rule.description,
    schedules: rule.match.schedules,
    labels: Object.entries(rule.match.labels ?? {}).map(([name, value], key) => ({ key, name, value })),
    on: new Set(rule.on.map((condition) => condition.kind)),
    kind: rule.to.kind,
    url: rule.to.url,
    secret: rule.to.kind === "webhook" ? secretName(rule.to.secret) : "",
  };
  for (const condition of rule.on) {
    if (condition.kind === "failure") made.every = condition.every;
    if (condition.kind === "failures_in_a_row") made.count = String(condition.count);
    if (condition.kind === "did_not_run") {
      if (typeof condition.within_seconds === "number") made.within = lengthOf(condition.within_seconds);
      if (typeof condition.grace_seconds === "number") {
        made.silence = "grace";
        made.grace = lengthOf(condition.grace_seconds);
      }
    }
  }
  return made;
}

/** The order of a rule's conditions. */
export const KINDS: readonly ConditionKind[] = [
  "failure",
  "failures_in_a_row",
  "did_not_run",
  "sla_miss",
  "recovery",
];

type Definition = Pick<RuleSpec, "name" | "description" | "match" | "on" | "to">;

export interface ReadDraft {
  readonly definition: Definition;
  /** Problems found in the browser, by JSON pointer. */
  readonly problems: ReadonlyMap<string, string>;
}

export function readDraft(draft: RuleDraft): ReadDraft {
  const problems = new Map<string, string>();
  const kinds = KINDS.filter((kind) => draft.on.has(kind));
  if (draft.name.trim() === "") problems.set("/name", "Give it a name.");
  if (kinds.length === 0) problems.set("/on", "Choose at least one.");
  if (draft.url.trim() === "") problems.set("/to/url", "Say where to.");
  if (draft.kind === "webhook" && draft.secret.trim() === "") {
    problems.set("/to/secret", "Name the secret that messages are signed with.");
  }
  const on = kinds.map((kind, index) => conditionOf(draft, kind, `/on/${index}`, problems));
  return {
    definition: {
      name: draft.name.trim(),
      description: draft.description.trim(),
      match: { schedules: [...draft.schedules], labels: labelsOf(draft.labels, problems) },
      on,
      to: addressOf(draft),
    },
    problems,
  };
}

function conditionOf(
  draft: RuleDraft,
  kind: ConditionKind,
  at: string,
  problems: Map<string, string>,
): Condition {
  switch (kind) {
    case "failure":
      return { kind, every: draft.every };
    case "failures_in_a_row": {
      const count = numberOf(draft.count);
      if (count === null) problems.set(at, "Say how many, as a number.");
      return { kind, count: count ?? 0 };
    }
    case "did_not_run": {
      const seconds = secondsOf(draft.silence === "within" ? draft.within : draft.grace);
      if (seconds === null) problems.set(at, "Say how long, as a number.");
      return draft.silence === "within"
        ? { kind, within_seconds: seconds ?? 0 }
        : { kind, grace_seconds: seconds ?? 0 };
    }
    case "recovery":
    case "sla_miss":
      return { kind };
  }
}

function labelsOf(pairs: readonly Pair[], problems: Map<string, string>): Record<string, string> {
  const filled = pairs.filter((pair) => pair.name.trim() !== "" || pair.value.trim() !== "");
  const names = filled.map((pair) => pair.name.trim());
  if (names.includes("")) problems.set("/match/labels", "A label needs a name.");
  else if (new Set(names).size < names.length) problems.set("/match/labels", "Name each label once.");
  return Object.fromEntries(filled.map((pair) => [pair.name.trim(), pair.value.trim()]));
}

function addressOf({ kind, url, secret }: RuleDraft): Address {
  return kind === "webhook"
    ? { kind, url: url.trim(), secret: referenceTo(secretName(secret.trim()) || secret.trim()) }
    : { kind, url: url.trim() };
}

/** JSON pointers of all controls of the form. */
export function shownPointers(on: readonly Condition[]): readonly string[] {
  return [
    "/name",
    "/description",
    "/match",
    "/match/schedules",
    "/match/labels",
    "/on",
    ...on.map((_, index) => `/on/${index}`),
    "/to",
    "/to/url",
    "/to/secret",
  ];
}
