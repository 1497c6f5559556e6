import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HIDDEN_MS, keepWhileShown } from "./shown";

class Seen extends EventTarget {
  visibilityState: DocumentVisibilityState = "visible";
  becomes(state: DocumentVisibilityState) {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

let page: EventTarget;
let seen: Seen;
let isRunning: boolean;
const stream = {
  start: () => {
    isRunning = true;
  },
  stop: () => {
    isRunning = false;
  },
};
const keep = () => keepWhileShown(stream, page, seen);
const transition = (kind: string, persisted: boolean) =>
  page.dispatchEvent(Object.assign(new Event(kind), { persisted }));

beforeEach(() => {
  vi.useFakeTimers();
  page = new EventTarget();
  seen = new Seen();
  isRunning = false;
});

afterEach(() => {
  vi.useRealTimers();
});

test("a page that goes into the back/forward cache stops its stream at once, and starts it when it is back", () => {
  keep();
  expect(isRunning).toBe(true);
  transition("pagehide", true);
  expect(isRunning).toBe(false);
  transition("pageshow", true);
  expect(isRunning).toBe(true);
});

test("a hidden tab stops its stream after a moment", () => {
  keep();
  seen.becomes("hidden");
  vi.advanceTimersByTime(HIDDEN_MS - 1);
  expect(isRunning).toBe(true);
  vi.advanceTimersByTime(1);
  expect(isRunning).toBe(false);
  seen.becomes("visible");
  expect(isRunning).toBe(true);
});

test("a glance at another tab changes nothing", () => {
  keep();
  seen.becomes("hidden");
  seen.becomes("visible");
  vi.advanceTimersByTime(10 * HIDDEN_MS);
  expect(isRunning).toBe(true);
});

test("a tab that is opened in the background has no stream until it is shown", () => {
  seen.visibilityState = "hidden";
  keep();
  expect(isRunning).toBe(false);
  seen.becomes("visible");
  expect(isRunning).toBe(true);
});

test("once ended it does not start again", () => {
  keep()();
  expect(isRunning).toBe(false);
  seen.becomes("visible");
  transition("pageshow", true);
  expect(isRunning).toBe(false);
});
