import { expect, test } from "vitest";
import { timeOf } from "./audit";

test("a record is found by the time that its id begins with", () => {
  expect(timeOf("019a8b5e-6b80-7000-8000-000000000000")).toBe(0x019a8b5e6b80);
});

test("what is no id of a record is sought nowhere", () => {
  expect(timeOf("019a8b5e-6b80-4000-8000-000000000000")).toBeNull();
  expect(timeOf("../keys")).toBeNull();
});
