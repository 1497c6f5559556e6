// Forms built from a JSON schema: the fields, and how input becomes a JSON object. Pure functions.
//
// Each field holds text. Empty fields are left out, so that the default applies. A field that was not touched
// keeps the value that it was opened with. Values that no plain field can hold (alternatives, lists of objects,
// objects without known properties) are typed as JSON.

import { isObject } from "./difference";
import { numberOf } from "./duration";
import { instantAt, wallTime } from "./wall";

export type JsonObject = Record<string, unknown>;

type Input =
  | { readonly kind: "text"; readonly isLong: boolean }
  | { readonly kind: "number"; readonly isWhole: boolean }
  | { readonly kind: "time"; readonly zone: string }
  | { readonly kind: "flag" }
  | { readonly kind: "choice"; readonly values: readonly unknown[] }
  /** One item per line. */
  | { readonly kind: "list"; readonly isNumbers: boolean }
  | { readonly kind: "group"; readonly fields: readonly SchemaField[] }
  | { readonly kind: "json" };

export interface SchemaField {
  readonly name: string;
  /** The names from the root of the object, as in a JSON pointer: "place/latitude". */
  readonly path: string;
  readonly title: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  readonly input: Input;
  /** The field's own schema without references. It holds the limits of the value. */
  readonly schema: Schema;
  /** The default value. Undefined: none. */
  readonly fallback: unknown;
}

export interface Schema {
  readonly [name: string]: unknown;
}

interface Place {
  readonly root: Schema;
  /** Path of the object that has the fields, with a slash at its end. Empty: the root. */
  readonly above: string;
  /** Time zone in which instants are typed. Null: they are typed as text. */
  readonly zone: string | null;
}

/** Deeper objects are typed as JSON: a schema may contain itself. */
const MAX_DEPTH = 4;

/** Fields of an object schema, in schema order. Null: the schema does not list its properties. */
export function fieldsOf(schema: Schema, zone: string | null = null): readonly SchemaField[] | null {
  return fieldsAt(schema, { root: schema, above: "", zone });
}

function fieldsAt(schema: Schema, place: Place): readonly SchemaField[] | null {
  const properties = schema.properties;
  if (!isObject(properties)) {
    return schema.additionalProperties === false ? [] : null;
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).map(([name, given]) => {
    const own = isObject(given) ? given : {};
    const path = place.above + name;
    const resolved = resolve(own, place.root);
    return {
      name,
      path,
      title: typeof own.title === "string" ? own.title : titleOf(name),
      hint: typeof own.description === "string" ? own.description : "",
      isRequired: required.includes(name),
      isNullable:
        Array.isArray(own.anyOf) && own.anyOf.some((each) => isObject(each) && each.type === "null"),
      input: inputOf(resolved, { ...place, above: `${path}/` }),
      schema: resolved,
      fallback: "default" in own ? own.default : undefined,
    };
  });
}

function titleOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Follow references. Treat "T or null" as T. */
function resolve(given: Schema, root: Schema, depth = 0): Schema {
  if (depth > 8) {
    return given;
  }
  if (typeof given.$ref === "string") {
    const found = given.$ref
      .replace(/^#\//, "")
      .split("/")
      .reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), root);
    return isObject(found) ? resolve(found, root, depth + 1) : given;
  }
  if (Array.isArray(given.anyOf)) {
    const some = given.anyOf.filter((each) => isObject(each) && each.type !== "null");
    if (some.length === 1 && isObject(some[0])) {
      return resolve(some[0], root, depth + 1);
    }
  }
  return given;
}

function inputOf(schema: Schema, place: Place): Input {
  if (Array.isArray(schema.enum)) {
    return { kind: "choice", values: schema.enum };
  }
  if ("const" in schema) {
    return { kind: "choice", values: [schema.const] };
  }
  switch (schema.type) {
    case "string":
      return schema.format === "date-time" && place.zone !== null
        ? { kind: "time", zone: place.zone }
        : { kind: "text", isLong: typeof schema.maxLength === "number" && schema.maxLength > 500 };
    case "integer":
      return { kind: "number", isWhole: true };
    case "number":
      return { kind: "number", isWhole: false };
    case "boolean":
      return { kind: "flag" };
    case "array": {
      const items = isObject(schema.items) ? resolve(schema.items, place.root) : {};
      return items.type === "string" || items.type === "integer" || items.type === "number"
        ? { kind: "list", isNumbers: items.type !== "string" }
        : { kind: "json" };
    }
    case "object": {
      const fields = place.above.split("/").length <= MAX_DEPTH ? fieldsAt(schema, place) : null;
      return fields === null || fields.length === 0 ? { kind: "json" } : { kind: "group", fields };
    }
    default:
      return { kind: "json" };
  }
}

/** Paths of these fields, and of those within them. */
function pathsOf(fields: readonly SchemaField[]): readonly string[] {
  return fields.flatMap(({ path, input }) => [
    path,
    ...(input.kind === "group" ? pathsOf(input.fields) : []),
  ]);
}

// --- while it is typed ---------------------------------------------------------------------------------

/** Draft of an object: the existing values, and what was typed into fields or as JSON. */
export interface ObjectDraft {
  readonly value: JsonObject;
  /** What was typed, by the path of the field. */
  readonly texts: Readonly<Record<string, string>>;
  /** The whole object as JSON text. Null: fields are used. */
  readonly json: string | null;
}

export function objectDraft(value: JsonObject): ObjectDraft {
  return { value, texts: {}, json: null };
}

/** Paths of the fields that the form shows. None while the object is typed as JSON. */
export function shownPaths(draft: ObjectDraft, fields: readonly SchemaField[] | null): readonly string[] {
  return draft.json === null && fields !== null ? pathsOf(fields) : [];
}

/** Text of a field: what was typed, else the existing value. */
export function textIn(texts: ObjectDraft["texts"], field: SchemaField, value: unknown): string {
  return texts[field.path] ?? textOf(field.input, value);
}

function textOf(input: Input, value: unknown): string {
  if (value === undefined || value === null) {
    return "";
  }
  if (typeof value === "string") {
    if (input.kind === "time") return wallTime(value, input.zone);
    if (input.kind === "text" || input.kind === "number") return value;
  }
  if (input.kind === "list" && Array.isArray(value) && value.length > 0) {
    const lines = value.map(String).join("\n");
    if (isSameList(linesOf(lines), value.map(String)) && !lines.startsWith("[")) return lines;
  }
  return JSON.stringify(value, null, isObject(value) ? 2 : 0);
}

function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}

// --- reading -------------------------------------------------------------------------------------------

export interface ReadObject {
  readonly value: JsonObject;
  /** Problems by path. "": of the object as a whole. */
  readonly problems: Readonly<Record<string, string>>;
}

/** Convert a draft to an object. `fields` null: no schema; the JSON text counts, else the existing values. */
export function readObject(draft: ObjectDraft, fields: readonly SchemaField[] | null): ReadObject {
  if (draft.json !== null) {
    const read = draft.json.trim() === "" ? { value: {} } : jsonOf(draft.json);
    if ("problem" in read) return { value: draft.value, problems: { "": read.problem } };
    if (!isObject(read.value)) return { value: draft.value, problems: { "": "Must be an object: {…}." } };
    return { value: read.value, problems: {} };
  }
  if (fields === null) {
    return { value: draft.value, problems: {} };
  }
  const problems: Record<string, string> = {};
  return { value: objectIn(fields, draft.value, draft.texts, problems), problems };
}

function objectIn(
  fields: readonly SchemaField[],
  before: JsonObject,
  texts: ObjectDraft["texts"],
  problems: Record<string, string>,
): JsonObject {
  // Values that the schema does not list are kept.
  const made = { ...before };
  for (const field of fields) {
    const value = fieldValue(field, before[field.name], texts, problems);
    if (value === undefined) delete made[field.name];
    else made[field.name] = value;
  }
  return made;
}

/** Value of a field. Undefined: it is left out. */
function fieldValue(
  field: SchemaField,
  before: unknown,
  texts: ObjectDraft["texts"],
  problems: Record<string, string>,
): unknown {
  const { input, path } = field;
  const isTouched =
    input.kind === "group" ? pathsOf(input.fields).some((each) => each in texts) : path in texts;
  if (!isTouched && before !== undefined) {
    return before;
  }
  if (input.kind === "group") {
    const inner = isObject(before) ? before : {};
    return !field.isRequired && isEmpty(input.fields, inner, texts)
      ? undefined
      : objectIn(input.fields, inner, texts, problems);
  }
  const text = texts[path] ?? "";
  if (text.trim() === "") {
    if (!field.isRequired) return undefined;
    if (field.isNullable) return null;
    problems[path] = "Needs a value.";
    return undefined;
  }
  const read = parsed(field, text);
  if ("problem" in read) {
    problems[path] = read.problem;
    return undefined;
  }
  return read.value;
}

function isEmpty(fields: readonly SchemaField[], value: JsonObject, texts: ObjectDraft["texts"]): boolean {
  return fields.every((field) => {
    const own = value[field.name];
    return field.input.kind === "group"
      ? isEmpty(field.input.fields, isObject(own) ? own : {}, texts)
      : textIn(texts, field, own).trim() === "";
  });
}

type Read = { value: unknown } | { problem: string };

const SECRET = /^\$\{secret:[^}]+\}$/;

function parsed({ input, schema }: SchemaField, text: string): Read {
  if (SECRET.test(text.trim())) {
    return { value: text };
  }
  switch (input.kind) {
    case "text":
      return limited(schema, text);
    case "number": {
      const read = numberIn(text, input.isWhole);
      return "problem" in read ? read : limited(schema, read.value);
    }
    case "time": {
      const instant = instantAt(text, input.zone);
      return instant === null ? { problem: "Is not a time." } : { value: instant };
    }
    case "list":
      return text.trim().startsWith("[") ? shaped(schema, jsonOf(text)) : listIn(text, input.isNumbers);
    default:
      return shaped(schema, jsonOf(text));
  }
}

function numberIn(text: string, isWhole: boolean): { value: number } | { problem: string } {
  const number = numberOf(text);
  if (number === null) return { problem: "Is not a number." };
  return isWhole && !Number.isInteger(number) ? { problem: "Is not a whole number." } : { value: number };
}

function listIn(text: string, isNumbers: boolean): Read {
  const lines = linesOf(text);
  if (!isNumbers) return { value: lines };
  const wrong = lines.find((line) => numberOf(line) === null);
  return wrong === undefined ? { value: lines.map(numberOf) } : { problem: `${wrong} is not a number.` };
}

export function jsonOf(text: string): Read {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `Is not JSON: ${error instanceof Error ? error.message : "it can't be read"}` };
  }
}

/** Check that JSON is a list or an object, if the schema asks for one. */
function shaped(schema: Schema, read: Read): Read {
  if ("problem" in read) return read;
  if (schema.type === "object" && !isObject(read.value)) return { problem: "Must be an object: {…}." };
  if (schema.type === "array" && !Array.isArray(read.value)) return { problem: "Must be a list: […]." };
  return read;
}

/** Check a value against the limits in its schema. Text that holds a secret is checked by the server. */
function limited(schema: Schema, value: string | number): Read {
  if (typeof value === "string" && value.includes("${secret:")) {
    return { value };
  }
  const size = typeof value === "string" ? [...value].length : value;
  const broken = LIMITS.find(([name, isKept]) => {
    const limit = schema[name];
    return typeof limit === "number" && !isKept(size, limit);
  });
  if (broken !== undefined) {
    return { problem: broken[2](Number(schema[broken[0]])) };
  }
  if (typeof value === "string" && typeof schema.pattern === "string" && !matches(value, schema.pattern)) {
    return { problem: `Must match ${schema.pattern}.` };
  }
  return { value };
}

type Limit = readonly [
  keyword: string,
  isKept: (size: number, limit: number) => boolean,
  problem: (limit: number) => string,
];

const LIMITS: readonly Limit[] = [
  ["minLength", (size, limit) => size >= limit, (limit) => `Must have at least ${limit} characters.`],
  ["maxLength", (size, limit) => size <= limit, (limit) => `Must have at most ${limit} characters.`],
  ["minimum", (size, limit) => size >= limit, (limit) => `Must be at least ${limit}.`],
  ["exclusiveMinimum", (size, limit) => size > limit, (limit) => `Must be more than ${limit}.`],
  ["maximum", (size, limit) => size <= limit, (limit) => `Must be at most ${limit}.`],
  ["exclusiveMaximum", (size, limit) => size < limit, (limit) => `Must be less than ${limit}.`],
];

function matches(text: string, pattern: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true; // not a pattern of this language: the server checks it
  }
}

/** Values that differ from the schedule's own; a manual run sends only these. Null: none. */
export function changedValues(own: JsonObject, wanted: JsonObject): JsonObject | null {
  const changed = Object.entries(wanted).filter(
    ([name, value]) => JSON.stringify(own[name]) !== JSON.stringify(value),
  );
  return changed.length === 0 ? null : Object.fromEntries(changed);
}
