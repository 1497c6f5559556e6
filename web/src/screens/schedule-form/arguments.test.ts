import { expect, test } from "vitest";
import {
  argumentFields,
  argumentsDraft,
  argumentsOf,
  changedArguments,
  othersOf,
  readArguments,
  textsOf,
} from "./arguments";

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
const fields = argumentFields(SCHEMA) ?? [];

test("each property gets the plainest field that can hold it", () => {
  expect(fields.map(({ name, input }) => [name, input.kind])).toEqual([
    ["region", "text"],
    ["limit", "number"],
    ["dry_run", "flag"],
    ["size", "choice"],
    ["readers", "json"],
    ["note", "text"],
  ]);
  expect(fields[0]?.isRequired).toBe(true);
  expect(fields[1]?.fallback).toBe(100);
});

test("what is left empty is left to the function", () => {
  const read = argumentsOf(fields, { region: "eu", limit: "", note: "" }, {});
  expect(read).toEqual({ args: { region: "eu" }, problems: {} });
});

test("what is typed becomes a value of its type", () => {
  const texts = { region: "eu", limit: "5", dry_run: "true", size: '"large"', readers: '["a"]', note: "7" };
  expect(argumentsOf(fields, texts, {}).args).toEqual({
    region: "eu",
    limit: 5,
    dry_run: true,
    size: "large",
    readers: ["a"],
    note: "7",
  });
});

test("arguments that there are come back as they were", () => {
  const args = { region: "eu", limit: 5, dry_run: false, size: "large", readers: null };
  expect(argumentsOf(fields, textsOf(fields, args), {}).args).toEqual(args);
});

test("what can't be read is told by name", () => {
  const { problems } = argumentsOf(fields, { region: "eu", limit: "1.5", readers: "[" }, {});
  expect(problems.limit).toMatch(/whole/);
  expect(problems.readers).toMatch(/JSON/);
});

test("a secret may stand in the place of a number", () => {
  expect(argumentsOf(fields, { region: "eu", limit: "$" + "{secret:limit}" }, {}).args.limit).toBe(
    "$" + "{secret:limit}",
  );
});

test("arguments that the schema does not know are kept", () => {
  const args = { region: "eu", added: 1 };
  const others = othersOf(fields, args);
  expect(others).toEqual({ added: 1 });
  expect(argumentsOf(fields, textsOf(fields, args), others).args).toEqual(args);
});

test("a run by hand is told what differs, and nothing else", () => {
  expect(changedArguments({ region: "eu", limit: 5 }, { region: "us", limit: 5 })).toEqual({ region: "us" });
  expect(changedArguments({ region: "eu" }, { region: "eu" })).toBeNull();
});

test("a schema without properties leaves all open, unless it forbids them", () => {
  expect(argumentFields({ type: "object" })).toBeNull();
  expect(argumentFields({ type: "object", additionalProperties: false })).toEqual([]);
});

test("a required one that is empty is missed", () => {
  expect(argumentsOf(fields, { region: " " }, {}).problems.region).toMatch(/value/);
});

test("what is typed counts over what there was", () => {
  const draft = { ...argumentsDraft({ region: "eu", limit: 5 }), texts: { limit: "" } };
  expect(readArguments(draft, fields).args).toEqual({ region: "eu" });
});

test("all of them may be typed as JSON", () => {
  const draft = argumentsDraft({ region: "eu" });
  expect(readArguments({ ...draft, json: '{"region": "us", "x": 1}' }, fields).args).toEqual({
    region: "us",
    x: 1,
  });
  expect(readArguments({ ...draft, json: "[1]" }, fields).problems[""]).toMatch(/object/);
});
