import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createElement, type ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { ProblemError } from "@/api/problem";
import { type Definition, type Kind, kinds as kindsQuery } from "@/api/schedule-editing";
import { pythonOf } from "@/screens/schedule/code/python";
import { commandOf } from "@/screens/schedule/code/shell";
import { DEFAULTS } from "@/screens/schedule-form/definition";
import { blankDraft, type Draft, draftOf, readDraft, shownPointers } from "@/screens/schedule-form/draft";
import { FormProvider } from "@/screens/schedule-form/form";
import { KindPicker } from "@/screens/schedule-form/KindPicker";
import { problemsOf } from "@/screens/schedule-form/problems";
import { askedOf } from "@/screens/schedule-form/usePreviewAsked";
import { TargetLine } from "@/screens/schedules/parts";
import { expressionOf, type Family, kindChoices, targetOf } from ".";

const SUN: Kind = {
  family: "trigger",
  name: "sun",
  display_name: "Sunrise",
  description: "Fires when the sun rises.",
  is_available: true,
  schema: {
    $defs: {
      Place: {
        type: "object",
        properties: { latitude: { type: "number", minimum: -90, maximum: 90, title: "Latitude" } },
        required: ["latitude"],
      },
    },
    properties: {
      kind: { const: "sun", default: "sun" },
      place: { $ref: "#/$defs/Place", title: "Place", description: "Where it rises." },
      offset: { type: "integer", default: 0, title: "Offset", description: "Minutes after it." },
      since: { type: "string", format: "date-time", title: "Since" },
    },
    required: ["place"],
  },
};
const MQTT: Kind = {
  family: "target",
  name: "mqtt",
  display_name: "MQTT message",
  description: "Publishes a message.",
  is_available: false,
  schema: {
    properties: {
      kind: { const: "mqtt", default: "mqtt" },
      topic: { type: "string", minLength: 1, title: "Topic" },
      tags: { type: "array", items: { type: "string" }, title: "Tags" },
      retain: { type: "boolean", default: false, title: "Retain" },
    },
    required: ["topic"],
  },
};
const LISTED = [SUN, MQTT];
const known = { base: null, fields: null, kinds: LISTED };
const sunrise: Definition = {
  ...DEFAULTS,
  name: "sunrise",
  trigger: { kind: "sun", place: { latitude: 52.5 }, offset: 5, since: "2026-07-01T07:00:00.123456Z" },
  target: { kind: "mqtt", topic: "sun/up", tags: ["a", "b"], retain: null },
};

function shownIn(draft: Draft, family: Family, error: unknown = null): string {
  const problems = problemsOf(error, new Map(), shownPointers(draft, known)).byField;
  const value = {
    draft,
    change: () => {},
    problem: (pointer: string) => problems.get(pointer) ?? null,
    fields: null,
    task: null,
    kinds: LISTED,
  };
  return renderToStaticMarkup(
    createElement(FormProvider, { value }, createElement(KindPicker, { family, legend: "Kind" })),
  );
}

function withKinds(children: ReactNode): string {
  const client = new QueryClient();
  client.setQueryData(kindsQuery.queryKey, { items: LISTED, next_page_token: "" });
  return renderToStaticMarkup(createElement(QueryClientProvider, { client }, children));
}

test("every kind of the server is offered, built-in ones first, with why it can't be chosen", () => {
  const cron = { ...SUN, name: "cron", display_name: "Of the server" };
  expect(kindChoices("trigger", [SUN, cron], []).map(({ label }) => label)).toEqual(["Cron", "Sunrise"]);
  expect(kindChoices("target", LISTED, ["gone"])).toMatchObject([
    { value: "mqtt", label: "MQTT message", whyNot: expect.stringMatching(/server/) },
    { value: "gone", label: "gone", whyNot: null },
  ]);
});

test("until the server has answered, the built-in kinds are offered", () => {
  expect(kindChoices("target", [], []).map(({ value }) => value)).toEqual([
    "function",
    "http",
    "event",
    "celery",
  ]);
});

test.each([[LISTED], [[]]])("a schedule of other kinds that was not touched is saved as it was", (kinds) => {
  const read = readDraft(draftOf(sunrise, "UTC"), { ...known, base: sunrise, kinds });
  expect([...read.problems]).toEqual([]);
  expect(read.definition).toEqual(sunrise);
});

function typedDraft(trigger: Record<string, string>, target: Record<string, string>): Draft {
  const draft = { ...blankDraft("Europe/Berlin"), name: "sunrise" };
  const typed = (texts: Record<string, string>) => ({ value: {}, texts, json: null });
  return {
    ...draft,
    trigger: { ...draft.trigger, kind: "sun", values: { ...draft.trigger.values, sun: typed(trigger) } },
    target: { kind: "mqtt", values: { ...draft.target.values, mqtt: typed(target) } },
  };
}

test("what is typed into the form of another kind becomes its document", () => {
  const draft = typedDraft(
    { "place/latitude": "52.5", since: "2026-07-01T09:00" },
    { topic: "sun/up", tags: "a\nb", retain: "true" },
  );
  const { definition, problems } = readDraft(draft, known);
  expect([...problems]).toEqual([]);
  expect(definition.trigger).toEqual({
    kind: "sun",
    place: { latitude: 52.5 },
    since: "2026-07-01T07:00:00Z",
  });
  expect(definition.target).toEqual({ kind: "mqtt", topic: "sun/up", tags: ["a", "b"], retain: true });
});

test("what is missing or wrong is told at its field", () => {
  const { problems } = readDraft(typedDraft({ offset: "soon" }, {}), known);
  expect([...problems.keys()].sort()).toEqual([
    "/target/topic",
    "/trigger/offset",
    "/trigger/place/latitude",
  ]);
});

test("a kind that was just chosen has an empty form", () => {
  const draft = blankDraft("UTC");
  const chosen = { ...draft, trigger: { ...draft.trigger, kind: "sun" } };
  expect(readDraft(chosen, known).definition.trigger).toEqual({ kind: "sun", place: {} });
  expect(shownIn(chosen, "trigger")).toContain("Fires when the sun rises.");
});

test("the form has the labels and the help of the schema, and no field for the kind", () => {
  const page = shownIn(draftOf(sunrise, "UTC"), "trigger");
  for (const text of [
    "Place",
    "Where it rises.",
    "Latitude",
    "(required)",
    "Minutes after it.",
    'value="52.5"',
  ]) {
    expect(page).toContain(text);
  }
  expect(page).toContain('type="datetime-local"');
  expect(page).not.toContain(">Kind (");
  expect(shownIn(draftOf(sunrise, "UTC"), "target")).toMatch(/<textarea[^>]*>a\nb<\/textarea>/);
});

const refused = new ProblemError(422, "invalid", "several", "", [
  { pointer: "/trigger/place/latitude", code: "range", detail: "is too far north", hint: "" },
]);

test("a problem that the server found is shown at its field", () => {
  const page = shownIn(draftOf(sunrise, "UTC"), "trigger", refused);
  const [, id] = /<input[^>]*aria-invalid="true"[^>]*aria-describedby="([^"]*)"/.exec(page) ?? [];
  expect(page).toContain(`<p id="${id}"`);
  expect(page).toContain("Is too far north.");
});

test("while it is typed as JSON, the problem is shown there", () => {
  const draft = draftOf(sunrise, "UTC");
  const json = { value: {}, texts: {}, json: '{"place": {"latitude": 99}}' };
  const page = shownIn(
    { ...draft, trigger: { ...draft.trigger, values: { sun: json } } },
    "trigger",
    refused,
  );
  expect(page).toMatch(/<textarea[^>]*aria-invalid="true"/);
  expect(page).toContain("place.latitude: is too far north.");
});

test("the preview of another kind names the schedule: its times may depend on it", () => {
  expect(askedOf(sunrise, null)).toMatchObject({ trigger: sunrise.trigger, name: "sunrise" });
});

test("lists tell the display name of another kind and its fields", () => {
  expect(expressionOf(sunrise.trigger)).toBe("sun");
  expect(targetOf({ kind: "mqtt", topic: "sun/up" })).toBe('{"topic":"sun/up"}');
  const line = withKinds(createElement(TargetLine, { target: { kind: "mqtt", topic: "sun/up" } }));
  expect(line).toContain("MQTT message");
  expect(line).toContain("{&quot;topic&quot;:&quot;sun/up&quot;}");
});

test("other kinds are copied as their documents", () => {
  expect(commandOf(sunrise)).toContain("-f - <<'YAML'");
  expect(commandOf(sunrise)).toContain("kind: mqtt");
  expect(pythonOf(sunrise, "http://x")).toContain('"http://x/api/v1/schedules"');
  const called = { ...sunrise, target: { kind: "function", name: "greet", args: {} } };
  expect(pythonOf({ ...called, trigger: { kind: "sun", offset: 5 } }, "http://x")).toContain(
    'when={"kind": "sun", "offset": 5},',
  );
});
