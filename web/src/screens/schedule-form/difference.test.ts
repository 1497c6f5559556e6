import { expect, test } from "vitest";
import openapi from "../../../openapi.json?raw";
import { DEFAULTS, DEFINED, shortDefinitionOf } from "./definition";
import { differencesOf, isSame, rebased, wordsOf } from "./difference";

const base = {
  name: "a",
  trigger: { kind: "cron", expression: "0 2 * * *", timezone: "UTC" },
  labels: { team: "pay" },
  calendars: ["de"],
};

test("differences are told as deep as they are", () => {
  const after = { ...base, trigger: { ...base.trigger, expression: "0 3 * * *" }, labels: {} };
  expect(differencesOf(base, after)).toEqual([
    { pointer: "/trigger/expression", before: "0 2 * * *", after: "0 3 * * *" },
    { pointer: "/labels/team", before: "pay", after: undefined },
  ]);
});

test("a list is told as a whole", () => {
  expect(differencesOf(base, { ...base, calendars: ["fr", "de"] })).toEqual([
    { pointer: "/calendars", before: ["de"], after: ["fr", "de"] },
  ]);
});

test("the order of names makes no difference, that of a list does", () => {
  expect(isSame({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true);
  expect(isSame([1, 2], [2, 1])).toBe(false);
  expect(isSame(0, false)).toBe(false);
});

test("what only they changed is theirs, what I changed is mine", () => {
  const mine = { ...base, name: "mine" };
  const theirs = { ...base, name: "theirs", labels: { team: "ops" } };
  expect(rebased(base, mine, theirs)).toEqual({ ...base, name: "mine", labels: { team: "ops" } });
});

test("a trigger of another kind is taken as a whole", () => {
  const mine = { ...base, trigger: { kind: "delay", seconds: 5 } };
  const theirs = { ...base, trigger: { ...base.trigger, timezone: "Europe/Paris" } };
  expect(rebased<object>(base, mine, theirs)).toMatchObject({ trigger: { kind: "delay", seconds: 5 } });
});

test("what they took away stays away", () => {
  expect(rebased<object>(base, { ...base, name: "mine" }, { ...base, labels: {} })).toMatchObject({
    labels: {},
  });
});

test("a pointer is told in words", () => {
  expect(wordsOf("/misfire/grace_seconds")).toBe("misfire › grace seconds");
});

test("the defaults are those of the server", () => {
  const { components } = JSON.parse(openapi);
  const properties: Record<string, { default?: unknown }> = components.schemas.ScheduleSpec.properties;
  expect(Object.keys(properties).sort()).toEqual([...DEFINED].sort());
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (name !== "labels") expect([name, properties[name]?.default]).toEqual([name, value]);
  }
});

test("what is so by default is not told", () => {
  const trigger = { kind: "delay", seconds: 5 } as const;
  const target = { kind: "function", name: "f", args: {} } as const;
  const known = { ...DEFAULTS, name: "a", trigger, target, queue: "other" };
  expect(shortDefinitionOf(known)).toEqual({ name: "a", trigger, target, queue: "other" });
});
