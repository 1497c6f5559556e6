// JSON values as YAML that parses to the same values. Pure functions.

import { isObject } from "../../schedule-form/difference";

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*$/;
/** Words that YAML 1.1 or 1.2 does not read as strings. */
const TAKEN = /^(true|false|null|yes|no|on|off|y|n|~|nan|inf)$/i;

export function yamlOf(value: unknown): string {
  return `${blockOf(value, 0)}\n`;
}

function blockOf(value: unknown, depth: number): string {
  const indent = "  ".repeat(depth);
  if (Array.isArray(value) && value.length > 0) {
    if (value.every((item) => !isObject(item) && !Array.isArray(item))) {
      return `[${value.map(scalarOf).join(", ")}]`;
    }
    return value.map((item) => `${indent}- ${blockOf(item, depth + 1).trimStart()}`).join("\n");
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    return Object.entries(value)
      .map(([name, item]) => `${indent}${scalarOf(name)}:${nested(item, depth)}`)
      .join("\n");
  }
  return scalarOf(value);
}

function nested(item: unknown, depth: number): string {
  const isBlock =
    (isObject(item) && Object.keys(item).length > 0) ||
    (Array.isArray(item) && item.some((each) => isObject(each) || Array.isArray(each)));
  return isBlock ? `\n${blockOf(item, depth + 1)}` : ` ${blockOf(item, depth + 1)}`;
}

function scalarOf(value: unknown): string {
  if (typeof value === "string") {
    return PLAIN.test(value) && !TAKEN.test(value) ? value : JSON.stringify(value);
  }
  return JSON.stringify(value ?? null);
}
