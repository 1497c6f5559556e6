import { describe, expect, test } from "vitest";
import type { Rule } from "@/api/notifications";
import { blankAbout, draftOf, readDraft } from "./rule-draft";
import { referenceTo } from "./rule-words";

const RULE: Rule = {
  rule_id: "01a1e586-9d26-7572-8249-047ea9f37d19",
  host_id: "00000000-0000-7000-8000-000000000001",
  version: 3,
  created_ts: "2026-03-01T12:00:00Z",
  updated_ts: "2026-03-01T12:00:00Z",
  name: "on-call",
  description: "pages somebody",
  match: { schedules: ["nightly"], labels: { team: "pay" } },
  on: [
    { kind: "failure", every: true },
    { kind: "failures_in_a_row", count: 5 },
    { kind: "did_not_run", grace_seconds: 90 },
    { kind: "sla_miss" },
    { kind: "recovery" },
  ],
  to: { kind: "webhook", url: "https://hooks.example/foliot", secret: referenceTo("webhook_key") },
  enabled: true,
};

test("what was read is written as it was", () => {
  const { name, description, match, on, to } = RULE;
  expect(readDraft(draftOf(RULE))).toEqual({
    definition: { name, description, match, on, to },
    problems: new Map(),
  });
});

test("patience since the last success is kept apart from patience after a due time", () => {
  const within = {
    ...RULE,
    on: [{ kind: "did_not_run" as const, within_seconds: 7200, grace_seconds: null }],
  };
  const draft = draftOf(within);
  expect(draft.within).toEqual({ amount: "2", unit: "h" });
  expect(readDraft(draft).definition.on).toEqual([{ kind: "did_not_run", within_seconds: 7200 }]);
  expect(readDraft({ ...draft, silence: "grace" }).definition.on).toEqual([
    { kind: "did_not_run", grace_seconds: 900 },
  ]);
});

test("a channel of Slack has no secret, and a typed reference is as good as a name", () => {
  const draft = { ...draftOf(RULE), secret: ` ${referenceTo("other")} ` };
  expect(readDraft(draft).definition.to).toMatchObject({ secret: referenceTo("other") });
  expect(readDraft({ ...draft, kind: "slack" }).definition.to).toEqual({ kind: "slack", url: RULE.to.url });
});

test("a new rule begins with the schedule that it was asked for, if that is one", () => {
  expect(blankAbout(RULE.rule_id).schedules).toEqual([RULE.rule_id]);
  expect(blankAbout("").schedules).toEqual([]);
});

describe("what is wrong", () => {
  function problems(changes: Partial<ReturnType<typeof draftOf>>): readonly string[] {
    return [...readDraft({ ...draftOf(RULE), ...changes }).problems.keys()];
  }

  test.each<[Partial<ReturnType<typeof draftOf>>, string]>([
    [{ name: " " }, "/name"],
    [{ on: new Set() }, "/on"],
    [{ count: "many" }, "/on/1"],
    [{ on: new Set(["did_not_run"]), grace: { amount: "", unit: "s" } }, "/on/0"],
    [{ url: "" }, "/to/url"],
    [{ secret: "" }, "/to/secret"],
    [{ labels: [{ key: 0, name: "", value: "x" }] }, "/match/labels"],
    [
      {
        labels: [
          { key: 0, name: "a", value: "x" },
          { key: 1, name: "a ", value: "y" },
        ],
      },
      "/match/labels",
    ],
  ])("in %j is told at %s", (changes, pointer) => {
    expect(problems(changes)).toEqual([pointer]);
  });

  test("is not a row of labels that is still empty", () => {
    expect(problems({ labels: [{ key: 0, name: " ", value: "" }] })).toEqual([]);
  });
});
