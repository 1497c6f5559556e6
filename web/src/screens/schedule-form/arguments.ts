// Forms built from a JSON schema: the fields, and how input becomes arguments. Pure functions.
//
// Each field holds text. Empty fields are left out, so that the function's own default applies. Values that
// no plain field can hold (lists, objects, alternatives) are typed as JSON.

import { isObject } from "./difference";
import { numberOf } from "./duration";

export type Arguments = Record<string, unknown>;
export type Texts = Readonly<Record<string, string>>;

export interface ArgumentField {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly input:
    | { readonly kind: "text"; readonly isLong: boolean }
    | { readonly kind: "number"; readonly isWhole: boolean }
    | { readonly kind: "flag" }
    | { readonly kind: "choice"; readonly values: readonly unknown[] }
    | { readonly kind: "json" };
  /** The function's default value. Undefined: none. */
  readonly fallback: unknown;
}

interface Schema {
  readonly [name: string]: unknown;
}

/** Fields of an object schema, in schema order. Null: the schema does not list its properties. */
export function argumentFields(schema: Schema): readonly ArgumentField[] | null {
  const properties = schema.properties;
  if (!isObject(properties)) {
    return schema.additionalProperties === false ? [] : null;
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).map(([name, given]) => {
    const own = isObject(given) ? given : {};
    const resolved = resolve(own, schema);
    return {
      name,
      label: name,
      hint: typeof own.description === "string" ? own.description : "",
      isRequired: required.includes(name),
      input: inputOf(resolved),
      fallback: "default" in own ? own.default : undefined,
    };
  });
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

function inputOf(schema: Schema): ArgumentField["input"] {
  if (Array.isArray(schema.enum)) {
    return { kind: "choice", values: schema.enum };
  }
  switch (schema.type) {
    case "string":
      return { kind: "text", isLong: typeof schema.maxLength === "number" && schema.maxLength > 500 };
    case "integer":
      return { kind: "number", isWhole: true };
    case "number":
      return { kind: "number", isWhole: false };
    case "boolean":
      return { kind: "flag" };
    default:
      return { kind: "json" };
  }
}

/** Text of each field for existing arguments. */
export function textsOf(fields: readonly ArgumentField[], args: Arguments): Texts {
  return Object.fromEntries(
    fields.map(({ name, input }) => {
      const value = args[name];
      if (value === undefined) return [name, ""];
      const isPlainText = input.kind === "text" || (input.kind === "number" && typeof value === "string");
      return [name, isPlainText && typeof value === "string" ? value : JSON.stringify(value)];
    }),
  );
}

export interface ReadArguments {
  readonly args: Arguments;
  /** Problems by argument name. */
  readonly problems: Readonly<Record<string, string>>;
}

/** Convert field texts to arguments. `others`: arguments that the schema does not list; they are kept. */
export function argumentsOf(
  fields: readonly ArgumentField[],
  texts: Texts,
  others: Arguments,
): ReadArguments {
  const args: Arguments = { ...others };
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    if (text.trim() === "") {
      if (field.isRequired) problems[field.name] = "Needs a value.";
      continue;
    }
    const read = valueIn(field, text);
    if ("problem" in read) problems[field.name] = read.problem;
    else args[field.name] = read.value;
  }
  return { args, problems };
}

const SECRET = /^\$\{secret:[^}]+\}$/;

function valueIn(field: ArgumentField, text: string): { value: unknown } | { problem: string } {
  if (field.input.kind === "text" || SECRET.test(text.trim())) {
    return { value: text };
  }
  if (field.input.kind === "number") {
    const number = numberOf(text);
    if (number === null) return { problem: "Is not a number." };
    if (field.input.isWhole && !Number.isInteger(number)) return { problem: "Is not a whole number." };
    return { value: number };
  }
  return jsonOf(text);
}

export function jsonOf(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `Is not JSON: ${error instanceof Error ? error.message : "it can't be read"}` };
  }
}

/** Arguments that the schema does not list. */
export function othersOf(fields: readonly ArgumentField[], args: Arguments): Arguments {
  const known = new Set(fields.map((field) => field.name));
  return Object.fromEntries(Object.entries(args).filter(([name]) => !known.has(name)));
}

/** Arguments that differ from the schedule's own; a manual run sends only these. Null: none. */
export function changedArguments(own: Arguments, wanted: Arguments): Arguments | null {
  const changed = Object.entries(wanted).filter(
    ([name, value]) => JSON.stringify(own[name]) !== JSON.stringify(value),
  );
  return changed.length === 0 ? null : Object.fromEntries(changed);
}

// --- while it is typed ---------------------------------------------------------------------------------

/** Draft of arguments: the existing values, and what was typed into fields or as JSON. */
export interface ArgumentsDraft {
  readonly value: Arguments;
  readonly texts: Texts;
  /** All arguments as JSON text. Null: fields are used. */
  readonly json: string | null;
}

export function argumentsDraft(value: Arguments): ArgumentsDraft {
  return { value, texts: {}, json: null };
}

export function textIn(draft: ArgumentsDraft, field: ArgumentField): string {
  return draft.texts[field.name] ?? textsOf([field], draft.value)[field.name] ?? "";
}

/** Convert a draft to arguments. `fields` null: no schema; the JSON text counts, else the existing values. */
export function readArguments(draft: ArgumentsDraft, fields: readonly ArgumentField[] | null): ReadArguments {
  if (draft.json !== null) {
    const read = draft.json.trim() === "" ? { value: {} } : jsonOf(draft.json);
    if ("problem" in read) return { args: draft.value, problems: { "": read.problem } };
    if (!isObject(read.value)) return { args: draft.value, problems: { "": "Must be an object: {…}." } };
    return { args: read.value, problems: {} };
  }
  if (fields === null) {
    return { args: draft.value, problems: {} };
  }
  const texts = Object.fromEntries(fields.map((field) => [field.name, textIn(draft, field)]));
  return argumentsOf(fields, texts, othersOf(fields, draft.value));
}
