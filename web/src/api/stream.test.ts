import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Liveness, Stream, type Told } from "./stream";

class Source extends EventTarget {
  readonly CLOSED = 2;
  readyState = 0;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  close() {
    this.readyState = 2;
  }
  opens() {
    this.readyState = 1;
    this.onopen?.();
  }
  breaks({ isFinal }: { isFinal: boolean }) {
    this.readyState = isFinal ? 2 : 0;
    this.onerror?.();
  }
  sends(kind: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) }));
  }
}

let sources: Source[];
let told: Told[];
let states: Liveness[];
let stream: Stream;
const last = () => sources.at(-1) as Source;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  sources = [];
  told = [];
  states = [];
  stream = new Stream(
    (each) => told.push(each),
    (each) => states.push(each),
    () => {
      sources.push(new Source());
      return last() as unknown as EventSource;
    },
  );
  stream.start();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("what the server sends is told with its kind", () => {
  last().opens();
  last().sends("status", { counts: { running: 2 }, leaders: ["a"] });
  last().sends("reset", { reason: "too_slow" });
  expect(told).toEqual([
    { kind: "status", data: { counts: { running: 2 }, leaders: ["a"] } },
    { kind: "reset" },
  ]);
});

test("a broken connection is left to the browser, which misses nothing", () => {
  last().opens();
  last().breaks({ isFinal: false });
  vi.runAllTimers();
  last().opens();
  expect([sources.length, told, states]).toEqual([1, [], ["live", "connecting", "live"]]);
});

test("after an error a new one is opened, ever less often, and everything is to be read again", () => {
  last().opens();
  last().breaks({ isFinal: true });
  vi.advanceTimersByTime(1000);
  expect(sources.length).toBe(2);
  last().breaks({ isFinal: true });
  vi.advanceTimersByTime(1999);
  expect(sources.length).toBe(2);
  vi.advanceTimersByTime(1);
  last().opens();
  expect([sources.length, told]).toEqual([3, [{ kind: "reset" }]]);
});

test("one that was stopped for a while tells on its return that something was missed", () => {
  last().opens();
  stream.stop();
  expect(last().readyState).toBe(2);
  stream.start();
  last().opens();
  expect(told).toEqual([{ kind: "reset" }]);
});

test("a first connection that comes about at once has missed nothing", () => {
  last().opens();
  expect(told).toEqual([]);
});
