import { expect, test } from "vitest";
import { ProblemError } from "@/api/problem";
import type { Definition } from "@/api/schedule-editing";
import { DEFAULTS } from "./definition";
import { blankDraft, draftOf, readDraft, shownPointers } from "./draft";
import { problemsOf } from "./problems";
import { fieldsOf } from "./schema-fields";

const nightly: Definition = {
  ...DEFAULTS,
  name: "nightly",
  trigger: { kind: "cron", expression: "30 2 * * mon-fri", timezone: "Europe/Berlin" },
  target: { kind: "function", name: "send_report", args: { region: "eu" } },
};
const unknown = { base: null, fields: null, kinds: [] };

const TRIGGERS: Definition["trigger"][] = [
  nightly.trigger,
  { kind: "interval", frequency_unit: "DAYS", frequency_time: 2, timezone: "Asia/Tokyo" },
  { kind: "once", at: "2026-03-29T02:30:15.123456+01:00" },
  { kind: "rrule", rule: "FREQ=DAILY", timezone: "UTC" },
  { kind: "delay", seconds: 90.5 },
];
const TARGETS: Definition["target"][] = [
  nightly.target,
  {
    kind: "http",
    method: "PUT",
    url: "https://agent.example",
    headers: { A: "b" },
    body: { x: [1] },
    expected_status: [200, 202],
  },
  { kind: "event", event_topic: "t", event_type: "e", event_data: { a: 1 } },
  { kind: "event", event_topic: "t", event_type: "e", event_data: "plain text" },
  { kind: "celery", task: "proj.clean", args: [1, "a"], kwargs: { b: 2 }, queue: "files" },
];

test.each([
  ...TRIGGERS.map((trigger): Definition => ({ ...nightly, trigger })),
  ...TARGETS.map((target): Definition => ({ ...nightly, target })),
  {
    ...nightly,
    start_ts: "2026-11-16T05:37:42.267683Z",
    end_ts: "2027-01-01T00:00:00Z",
    max_runs: 5,
    labels: { team: "pay" },
    calendars: ["de"],
    window: { days_of_week: [1, 7], hours_of_day: [0, 23], timezone: "UTC" },
    jitter_seconds: 90,
  } satisfies Definition,
])("what was opened and not touched is saved as it was", (definition) => {
  const read = readDraft(draftOf(definition, "America/New_York"), { ...unknown, base: definition });
  expect([...read.problems]).toEqual([]);
  expect(read.definition).toEqual(definition);
});

test("times are those of the schedule's zone", () => {
  const draft = { ...draftOf(nightly, "UTC"), start: "2026-07-01T09:00" };
  expect(readDraft(draft, unknown).definition.start_ts).toBe("2026-07-01T07:00:00Z");
});

test("a blank form misses a name and a task", () => {
  const { problems } = readDraft(blankDraft("UTC"), unknown);
  expect([...problems.keys()].sort()).toEqual(["/name", "/target/name"]);
});

test("what can't be read is told at its control", () => {
  const draft = draftOf({ ...nightly, target: TARGETS[1] as Definition["target"] }, "UTC");
  const broken = {
    ...draft,
    attempts: "many",
    target: {
      kind: "http",
      values: {
        http: {
          method: "PUT",
          url: "https://agent.example",
          body: "{",
          expected: "ok",
          headers: [
            { key: 1, name: "A", value: "1" },
            { key: 2, name: "A", value: "2" },
          ],
        },
      },
    },
  };
  expect([...readDraft(broken, unknown).problems.keys()].sort()).toEqual([
    "/retry/max_attempts",
    "/target/body",
    "/target/expected_status",
    "/target/headers",
  ]);
});

test("a problem is shown at the nearest control above it", () => {
  const error = new ProblemError(422, "invalid", "several", "", [
    { pointer: "/target/args/readers/0", code: "type", detail: "is not text", hint: "" },
    { pointer: "/target/args", code: "required", detail: "'region' is missing", hint: "" },
    { pointer: "/nowhere", code: "x", detail: "is odd", hint: "" },
  ]);
  const fields = fieldsOf({ properties: { readers: { type: "array" } } });
  const shown = shownPointers(draftOf(nightly, "UTC"), { ...unknown, fields });
  const { byField, besides } = problemsOf(error, new Map(), shown);
  expect(byField.get("/target/args/readers")?.text).toBe("0: is not text.");
  expect(byField.get("/target/args")?.text).toBe("'region' is missing.");
  expect(besides).toBe("nowhere: is odd.");
});

test("an error that names no field is told beside the form, a taken name at the name", () => {
  const shown = shownPointers(blankDraft("UTC"), unknown);
  const busy = new ProblemError(503, "overloaded", "Try again in a moment.");
  expect(problemsOf(busy, new Map(), shown).besides).toMatch(/moment/);
  const taken = new ProblemError(409, "name_taken", 'A schedule named "a" exists already.');
  expect(problemsOf(taken, new Map(), shown).byField.get("/name")?.text).toMatch(/exists/);
});
