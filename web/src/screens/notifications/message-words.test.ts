import { expect, test } from "vitest";
import { countIn, executionIn, lookOf, scheduleNameIn, triesWords } from "./message-words";

const schedule_id = "01a1e586-9d26-7572-8249-047ea9f37d19";

test("a message names the schedule as it was called then, and a test names none", () => {
  const message = { data: { schedule: { name: "nightly" } } };
  expect(scheduleNameIn({ schedule_id, message })).toBe("nightly");
  expect(scheduleNameIn({ schedule_id, message: { data: "?" } })).toBe("schedule 01a1e586…");
  expect(scheduleNameIn({ schedule_id: null, message })).toBeNull();
});

test("one that has gathered many says how many", () => {
  const message = { data: { of: "schedule.failed", count: 42, schedules: [] } };
  expect(countIn({ type: "schedules.gathered", message })).toBe(42);
  expect(countIn({ type: "schedule.failed", message })).toBeNull();
});

test("a message may tell of an execution", () => {
  expect(executionIn({ message: { data: { execution: { execution_id: "1" } } } })).toBe("1");
  expect(executionIn({ message: { data: {} } })).toBeNull();
});

test("what failed once and is tried again looks otherwise than what is on its way", () => {
  expect(lookOf({ status: "pending", error: null }).words).toBe("on its way");
  expect(lookOf({ status: "pending", error: "no" }).words).toBe("trying again");
  expect(lookOf({ status: "delivered", error: "no" }).words).toBe("delivered");
});

test("tries are counted in words", () => {
  expect([0, 1, 2].map(triesWords)).toEqual(["0 tries", "1 try", "2 tries"]);
});
