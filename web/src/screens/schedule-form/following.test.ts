import { expect, test } from "vitest";
import { DEFAULTS } from "./definition";
import { blankDraft, readDraft } from "./draft";
import { followTask } from "./following";

const reports = {
  queue: "reports",
  default_timeout_seconds: 600,
  default_retry: { ...DEFAULTS.retry, max_attempts: 6 },
};
const plain = { queue: null, default_timeout_seconds: 300, default_retry: null };

function taken(draft: ReturnType<typeof blankDraft>) {
  const { queue, timeout_seconds, retry } = readDraft(draft, {
    base: null,
    fields: null,
    kinds: [],
  }).definition;
  return [queue, timeout_seconds, retry.max_attempts];
}

test("a new schedule takes queue, timeout and retries from its task", () => {
  expect(taken(followTask(blankDraft("UTC"), null, reports))).toEqual(["reports", 600, 6]);
});

test("what its author has typed stays", () => {
  const typed = { ...blankDraft("UTC"), queue: "mail", attempts: "1" };
  expect(taken(followTask(typed, null, reports))).toEqual(["mail", 600, 1]);
});

test("another task takes the place of the first", () => {
  const first = followTask(blankDraft("UTC"), null, reports);
  expect(taken(followTask(first, reports, plain))).toEqual(["default", 300, 3]);
  expect(taken(followTask({ ...first, queue: "mail" }, reports, plain))).toEqual(["mail", 300, 3]);
});
