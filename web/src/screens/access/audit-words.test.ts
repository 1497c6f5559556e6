import { expect, test } from "vitest";
import {
  actionLooks,
  addressOfResource,
  asInstant,
  asLocal,
  nameOfResource,
  RESOURCE_TYPES,
} from "./audit-words";

test("what it was done to is named as it was then, else by its id", () => {
  const named = (before: unknown, after: unknown) => nameOfResource({ before, after, resource_id: "id" });
  expect([named({ name: "old" }, { name: "new" }), named({ name: "old" }, null), named(null, null)]).toEqual([
    "new",
    "old",
    "id",
  ]);
});

test("an action that is not known is shown by its verb", () => {
  expect(actionLooks("thing.twisted")).toEqual({ verb: "twisted", tone: "calm", icon: "form" });
});

test("each kind of resource is offered once", () => {
  expect(RESOURCE_TYPES.slice(0, 3)).toEqual(["schedule", "backfill", "execution"]);
});

test("names in addresses can't leave their place", () => {
  expect(addressOfResource("task_function", "a/b?c")).toBe("/cluster/tasks/a%2Fb%3Fc");
  expect(addressOfResource("calendar", "a&b")).toBe("/access/calendars?calendar=a%26b");
  expect(addressOfResource("session", "x")).toBeNull();
});

test("instants come back from the field that shows them", () => {
  const instant = "2026-03-29T10:05:00.000Z";
  expect(asInstant(asLocal(instant))).toBe(instant);
  expect([asLocal("nonsense"), asInstant(""), asInstant("nonsense")]).toEqual(["", "", ""]);
});
