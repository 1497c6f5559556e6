import { expect, test } from "vitest";
import type { Definition } from "@/api/schedule-editing";
import { DEFAULTS } from "../../schedule-form/definition";
import { pythonOf } from "./python";
import { pythonValue } from "./python-value";
import { commandOf, curlOf, quoted } from "./shell";
import { yamlOf } from "./yaml";

const nightly: Definition = {
  ...DEFAULTS,
  name: "nightly report",
  trigger: { kind: "cron", expression: "30 2 * * mon-fri", timezone: "Europe/Berlin" },
  target: { kind: "function", name: "send_report", args: { region: "it's", limit: 5, code: "7" } },
};

test("a word of a shell stays one word", () => {
  expect(quoted("plain-1.2")).toBe("plain-1.2");
  expect(quoted("it's $HOME")).toBe("'it'\\''s $HOME'");
  expect(quoted("")).toBe("''");
});

test("what options can say is said by options", () => {
  expect(commandOf(nightly)).toBe(
    [
      "foliot schedule create 'nightly report'",
      "  --cron '30 2 * * mon-fri'",
      "  --tz Europe/Berlin",
      "  --function send_report",
      "  --arg 'region=it'\\''s'",
      "  --arg limit=5",
      "  --arg 'code=\"7\"'",
    ].join(" \\\n"),
  );
});

test("what no option can say is said by the definition", () => {
  const patient = { ...nightly, retry: { ...DEFAULTS.retry, multiplier: 3 } };
  expect(commandOf(patient)).toMatch(/^foliot schedule create 'nightly report' -f - <<'YAML'\n/);
  expect(commandOf(patient)).toContain("  multiplier: 3\n");
  expect(commandOf({ ...nightly, retry: { ...DEFAULTS.retry, max_attempts: 5 } })).toContain("--retries 4");
});

test("only what differs from the defaults is told", () => {
  expect(commandOf(nightly)).not.toContain("--queue");
  expect(commandOf({ ...nightly, queue: "reports", labels: { team: "pay" } })).toContain("--label team=pay");
});

test("YAML quotes what it would take for something else", () => {
  expect(yamlOf({ a: "no", b: "0 2 * * *", c: "12", d: "plain text", e: "", f: null, g: true })).toBe(
    'a: "no"\nb: "0 2 * * *"\nc: "12"\nd: plain text\ne: ""\nf: null\ng: true\n',
  );
});

test("YAML nests objects and lists", () => {
  expect(yamlOf({ schedules: [{ name: "a", args: { x: [1, 2] }, none: {} }, { name: "b" }] })).toBe(
    "schedules:\n  - name: a\n    args:\n      x: [1, 2]\n    none: {}\n  - name: b\n",
  );
});

test("YAML keeps a line break, and a date a text", () => {
  expect(yamlOf({ a: "x\ny", at: "2026-11-16" })).toBe('a: "x\\ny"\nat: "2026-11-16"\n');
});

test("Python has its own words for the same values", () => {
  expect(pythonValue({ a: true, b: null, c: [1.5, "x"] })).toBe('{"a": True, "b": None, "c": [1.5, "x"]}');
});

test("code declares the schedule beside its function", () => {
  expect(pythonOf(nightly, "http://x")).toContain(
    `app.schedule(
    "nightly report",
    "send_report",
    when=cron("30 2 * * mon-fri", tz="Europe/Berlin"),
    args={"region": "it's", "limit": 5, "code": "7"},
)`,
  );
  expect(pythonOf(nightly, "http://x")).toMatch(/^from foliot import Foliot, cron\n/);
});

test("what the SDK does not declare is sent to the API", () => {
  const event = { kind: "event", event_topic: "t", event_type: "e", event_data: {} } as const;
  expect(pythonOf({ ...nightly, target: event }, "http://x")).toContain('"http://x/api/v1/schedules"');
});

test("curl's body is one word", () => {
  expect(curlOf(nightly, "http://x")).toContain(`"region": "it'\\''s"`);
});
