// JSON values as Python literals. Pure functions.

import { isObject } from "../../schedule-form/difference";

const WIDTH = 88;

/** A JSON value as a Python literal. Long values are broken into lines. */
export function pythonValue(value: unknown, indent = 0): string {
  const line = onLine(value);
  if (line.length + indent <= WIDTH || !(isObject(value) || Array.isArray(value))) {
    return line;
  }
  const inner = " ".repeat(indent + 4);
  const items = Array.isArray(value)
    ? value.map((item) => pythonValue(item, indent + 4))
    : Object.entries(value).map(([name, item]) => `${pythonText(name)}: ${pythonValue(item, indent + 4)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${" ".repeat(indent)}${close}`;
}

function onLine(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return pythonText(value);
  if (Array.isArray(value)) return `[${value.map(onLine).join(", ")}]`;
  if (isObject(value)) {
    return `{${Object.entries(value)
      .map(([name, item]) => `${pythonText(name)}: ${onLine(item)}`)
      .join(", ")}}`;
  }
  return String(value);
}

/** JSON string literals are valid in Python, because JSON.stringify does not escape non-ASCII characters. */
export function pythonText(text: string): string {
  return JSON.stringify(text);
}
