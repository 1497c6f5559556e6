import { expect, test } from "vitest";
import { matchPath } from "./match";

test("a path is told from a longer and from a shorter one", () => {
  expect(matchPath("/schedules", "/schedules")).toEqual({});
  expect(matchPath("/schedules", "/schedules/1")).toBeNull();
  expect(matchPath("/schedules/:id", "/schedules")).toBeNull();
});

test("a slash at the end does not matter", () => {
  expect(matchPath("/schedules", "/schedules/")).toEqual({});
});

test("parameters come decoded", () => {
  expect(matchPath("/queues/:name", "/queues/a%2Fb")).toEqual({ name: "a/b" });
});

test("what can't be decoded is no match", () => {
  expect(matchPath("/queues/:name", "/queues/%E0%A4%A")).toBeNull();
});
