import { expect, test } from "vitest";
import {
  changedValues,
  fieldsOf,
  type JsonObject,
  objectDraft,
  readObject,
  type SchemaField,
  shownPaths,
  textIn,
} from "./schema-fields";

const SCHEMA = {
  $defs: { Size: { enum: ["small", "large"], type: "string" } },
  additionalProperties: false,
  properties: {
    region: { type: "string", title: "Region" },
    limit: { type: "integer", default: 100 },
    dry_run: { type: "boolean", default: false },
    size: { $ref: "#/$defs/Size", default: "small" },
    readers: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }], default: null },
    note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
  },
  required: ["region"],
};
const fields = fieldsOf(SCHEMA) ?? [];

/** Read what was typed, over an existing value. */
function typed(texts: Record<string, string>, value: JsonObject = {}, some = fields) {
  return readObject({ ...objectDraft(value), texts }, some);
}

function texts(value: JsonObject, some: readonly SchemaField[] = fields): Record<string, string> {
  return Object.fromEntries(some.map((field) => [field.path, textIn({}, field, value[field.name])]));
}

test("each property gets the plainest field that can hold it", () => {
  expect(fields.map(({ name, input }) => [name, input.kind])).toEqual([
    ["region", "text"],
    ["limit", "number"],
    ["dry_run", "flag"],
    ["size", "choice"],
    ["readers", "list"],
    ["note", "text"],
  ]);
  expect(fields[0]?.isRequired).toBe(true);
  expect(fields[1]?.fallback).toBe(100);
});

test("what is left empty is left to the function", () => {
  const read = typed({ region: "eu", limit: "", note: "" });
  expect(read).toEqual({ value: { region: "eu" }, problems: {} });
});

test("what is typed becomes a value of its type", () => {
  const made = { region: "eu", limit: "5", dry_run: "true", size: '"large"', readers: "a\n b", note: "7" };
  expect(typed(made).value).toEqual({
    region: "eu",
    limit: 5,
    dry_run: true,
    size: "large",
    readers: ["a", "b"],
    note: "7",
  });
});

test("values that there are come back as they were", () => {
  const value = { region: "eu", limit: 5, dry_run: false, size: "large", readers: ["a", "b"] };
  expect(typed(texts(value)).value).toEqual(value);
});

test("what is not touched is kept, also null", () => {
  const value = { region: "eu", readers: null, note: null, limit: null };
  expect(typed({ region: "us" }, value)).toEqual({ value: { ...value, region: "us" }, problems: {} });
});

test.each([[[]], [["two\nlines"]], [["[x"]], [[" padded"]], [[""]]])(
  "a list that lines can't say is shown as JSON: %j",
  (readers) => {
    const shown = texts({ readers }).readers ?? "";
    expect(shown).toBe(JSON.stringify(readers));
    expect(typed({ region: "eu", readers: shown }).value.readers).toEqual(readers);
  },
);

test("what can't be read is told by name", () => {
  const { problems } = typed({ region: "eu", limit: "1.5", readers: "[" });
  expect(problems.limit).toMatch(/whole/);
  expect(problems.readers).toMatch(/JSON/);
});

test("a secret may stand in the place of a number", () => {
  expect(typed({ region: "eu", limit: "$" + "{secret:limit}" }).value.limit).toBe("$" + "{secret:limit}");
});

test("values that the schema does not know are kept", () => {
  expect(typed({ region: "us" }, { region: "eu", added: 1 }).value).toEqual({ region: "us", added: 1 });
});

test("a run by hand is told what differs, and nothing else", () => {
  expect(changedValues({ region: "eu", limit: 5 }, { region: "us", limit: 5 })).toEqual({ region: "us" });
  expect(changedValues({ region: "eu" }, { region: "eu" })).toBeNull();
});

test("a schema without properties leaves all open, unless it forbids them", () => {
  expect(fieldsOf({ type: "object" })).toBeNull();
  expect(fieldsOf({ type: "object", additionalProperties: false })).toEqual([]);
});

test("a required one that is empty is missed", () => {
  expect(typed({ region: " " }).problems.region).toMatch(/value/);
  expect(typed({}).problems.region).toMatch(/value/);
});

test("what is typed counts over what there was", () => {
  expect(typed({ limit: "" }, { region: "eu", limit: 5 }).value).toEqual({ region: "eu" });
});

test("all of them may be typed as JSON", () => {
  const draft = objectDraft({ region: "eu" });
  expect(readObject({ ...draft, json: '{"region": "us", "x": 1}' }, fields).value).toEqual({
    region: "us",
    x: 1,
  });
  expect(readObject({ ...draft, json: "[1]" }, fields).problems[""]).toMatch(/object/);
  expect(shownPaths({ ...draft, json: "{}" }, fields)).toEqual([]);
});

// --- schemas of kinds ------------------------------------------------------------------------------------

const PLACE = {
  type: "object",
  title: "Place",
  properties: {
    latitude: { type: "number", minimum: -90, maximum: 90 },
    name: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    inner: { $ref: "#/$defs/Place" },
  },
  required: ["latitude"],
};
const SUN = {
  $defs: { Place: PLACE },
  properties: {
    place: { $ref: "#/$defs/Place", description: "Where the sun rises." },
    since: { type: "string", format: "date-time" },
    code: { type: "string", minLength: 2, maxLength: 3, pattern: "^[a-z]+$" },
    share: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
    days: { type: "array", items: { type: "integer" } },
    extra: { type: "object", additionalProperties: { type: "string" } },
    rows: { type: "array", items: { type: "object" } },
    mode: { const: "rise" },
    odd: { anyOf: [{ type: "string" }, { type: "integer" }] },
    needed: { anyOf: [{ type: "integer" }, { type: "null" }] },
  },
  required: ["needed"],
};
const sun = fieldsOf(SUN, "Europe/Berlin") ?? [];

test("objects become groups, and what no field can hold becomes JSON", () => {
  expect(Object.fromEntries(sun.map(({ name, input }) => [name, input.kind]))).toEqual({
    place: "group",
    since: "time",
    code: "text",
    share: "number",
    days: "list",
    extra: "json",
    rows: "json",
    mode: "choice",
    odd: "json",
    needed: "number",
  });
  expect(sun[0]).toMatchObject({ title: "Place", hint: "Where the sun rises." });
  expect(fieldsOf(SUN)?.find((field) => field.name === "since")?.input.kind).toBe("text");
});

test("a schema that contains itself ends in JSON", () => {
  const depths = shownPaths(objectDraft({}), sun).map((path) => path.split("/").length);
  expect(Math.max(...depths)).toBeLessThan(8);
});

test("fields of an object are read into it", () => {
  const read = typed({ "place/latitude": "52,5", since: "2026-07-01T09:00", days: "1\n2" }, {}, sun);
  expect(read).toEqual({
    value: { place: { latitude: 52.5 }, since: "2026-07-01T07:00:00Z", days: [1, 2], needed: null },
    problems: {},
  });
});

test("an optional object without input is left out, one with input needs its required fields", () => {
  expect(typed({ "place/latitude": "" }, {}, sun)).toEqual({ value: { needed: null }, problems: {} });
  expect(typed({ "place/name": "Berlin" }, {}, sun).problems).toEqual({ "place/latitude": "Needs a value." });
});

test("an object keeps what was not typed", () => {
  const place = { latitude: 1, name: null, added: true };
  expect(typed({ "place/latitude": "2" }, { place }, sun).value.place).toEqual({ ...place, latitude: 2 });
});

test.each([
  ["place/latitude", "91", /at most 90/],
  ["place/latitude", "-91", /at least -90/],
  ["share", "0", /more than 0/],
  ["share", "1", /less than 1/],
  ["code", "a", /at least 2 characters/],
  ["code", "abcd", /at most 3 characters/],
  ["code", "A1", /match/],
  ["days", "1\nx", /x is not a number/],
  ["extra", "[]", /object/],
  ["rows", "{}", /list/],
  ["odd", "{", /JSON/],
  ["since", "soon", /time/],
])("%s can't be %j", (path, text, problem) => {
  expect(typed({ [path]: text }, {}, sun).problems[path]).toMatch(problem);
});

test("a pattern that this browser can't read is left to the server", () => {
  const some = fieldsOf({ properties: { code: { type: "string", pattern: "(?P<x>a)" } } }) ?? [];
  expect(typed({ code: "b" }, {}, some)).toEqual({ value: { code: "b" }, problems: {} });
});
