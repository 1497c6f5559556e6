import { expect, test } from "vitest";
import {
  daysWords,
  hoursWords,
  lengthWords,
  misfireWords,
  overlapWords,
  retryWords,
  windowWords,
} from "./sentences";

test("lengths are told in their own unit", () => {
  expect(lengthWords(0)).toBe("0 s");
  expect(lengthWords(3600)).toBe("1 h");
  expect(lengthWords(86_400)).toBe("1 day");
  expect(lengthWords(172_800)).toBe("2 days");
});

test("days and hours in a row are told as one", () => {
  expect(daysWords([1, 2, 3, 4, 5, 7])).toBe("Monday to Friday, Sunday");
  expect(daysWords([7, 6, 5, 4, 3, 2, 1])).toBe("every day");
  expect(hoursWords([9, 10, 11, 20])).toBe("09:00–12:00, 20:00–21:00");
  expect(windowWords(null)).toBe("At any time.");
});

test("a policy is told as what will happen", () => {
  expect(misfireWords({ policy: "fire_once", grace_seconds: 3600, max_catchup: 100 })).toBe(
    "A time that is late by more than 1 h never runs. If several were missed, they run once, together.",
  );
  expect(overlapWords({ policy: "skip", max_instances: 1 })).toBe(
    "While a run goes on, a time that is due is skipped.",
  );
  expect(overlapWords({ policy: "queue", max_instances: 3 })).toMatch(/^While 3 runs go on/);
});

test("one attempt is none again", () => {
  const retry = {
    max_attempts: 1,
    initial_delay_seconds: 1,
    multiplier: 2,
    max_delay_seconds: 30,
    jitter: true,
  };
  expect(retryWords(retry)).toBe("A failed attempt is not tried again.");
  expect(retryWords({ ...retry, max_attempts: 4, multiplier: 1, jitter: false })).toBe(
    "At most 4 attempts: after 1 s each.",
  );
});
