import { describe, expect, test } from "vitest";
import type { Condition, Rule } from "@/api/notifications";
import {
  conditionsWords,
  conditionWords,
  hostOf,
  isAbout,
  referenceTo,
  ruleStateOf,
  secretName,
} from "./rule-words";

test.each<[Condition, string]>([
  [{ kind: "failure", every: false }, "fails"],
  [{ kind: "failure", every: true }, "fails, every time"],
  [{ kind: "failures_in_a_row", count: 3 }, "fails 3 times in a row"],
  [{ kind: "recovery" }, "recovers"],
  [{ kind: "did_not_run", within_seconds: 3600, grace_seconds: null }, "no success for 1 h"],
  [{ kind: "did_not_run", within_seconds: 172_800 }, "no success for 2 days"],
  [{ kind: "did_not_run", within_seconds: null, grace_seconds: 900 }, "no success 15 min after a due time"],
  [{ kind: "did_not_run", grace_seconds: 0 }, "no success 0 s after a due time"],
  [{ kind: "sla_miss" }, "starts too late"],
])("%j is told as “%s”", (condition, words) => {
  expect(conditionWords(condition)).toBe(words);
});

test("what goes wrong comes first, in whatever order it was written", () => {
  expect(
    conditionsWords([{ kind: "recovery" }, { kind: "sla_miss" }, { kind: "failure", every: false }]),
  ).toBe("fails; starts too late; recovers");
});

test.each([
  ["https://hooks.example/services/T0/key", "hooks.example"],
  ["https://hooks.example:8443?token=1", "hooks.example:8443"],
  ["https://user:password@hooks.example/", "hooks.example"],
  ["http://[::1]:80/x", "[::1]:80"],
  ["nonsense", "an address that can't be read"],
])("of %s only the host is shown", (url, host) => {
  expect(hostOf(url)).toBe(host);
});

test("a reference to a secret and its name are the same", () => {
  expect(secretName(referenceTo("webhook_key"))).toBe("webhook_key");
  expect(secretName("whsec_in-plain-sight")).toBe("");
});

test("a rule is muted until its time, and disabled whatever else is said", () => {
  const now = new Date("2026-03-01T12:00:00Z");
  const states = [
    { enabled: true, muted_until_ts: null },
    { enabled: true, muted_until_ts: "2026-03-01T12:00:01Z" },
    { enabled: true, muted_until_ts: "2026-03-01T12:00:00Z" },
    { enabled: false, muted_until_ts: "2026-03-02T00:00:00Z" },
  ].map((rule) => ruleStateOf(rule, now));
  expect(states).toEqual(["enabled", "muted", "enabled", "disabled"]);
});

describe("a rule is about a schedule", () => {
  const id = "01a1e586-9d26-7572-8249-047ea9f37d19";
  const schedule = { schedule_id: id, name: "nightly", labels: { team: "pay", stage: "live" } };
  test.each<[boolean, string, Rule["match"]]>([
    [true, "if it names none", { schedules: [], labels: {} }],
    [true, "by its name", { schedules: ["other", "nightly"] }],
    [true, "by its id", { schedules: [id] }],
    [false, "unless others are named", { schedules: ["other"] }],
    [true, "if all labels are the schedule's", { schedules: [], labels: { team: "pay", stage: "live" } }],
    [false, "unless one label is not", { schedules: [], labels: { team: "pay", stage: "test" } }],
    [false, "unless it has not all of both", { schedules: ["nightly"], labels: { team: "ops" } }],
    [false, "unless a label is no schedule's", { schedules: [], labels: { toString: "x" } }],
  ])("%s: %s", (wanted, _, match) => {
    expect(isAbout({ match }, schedule)).toBe(wanted);
  });
});
