// A schedule as Python code. Pure functions.

import type { Definition } from "@/api/schedule-editing";
import { shortDefinitionOf } from "../../schedule-form/definition";
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
    : Object.entries(value).map(([name, item]) => `${textOf(name)}: ${pythonValue(item, indent + 4)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${" ".repeat(indent)}${close}`;
}

function onLine(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return textOf(value);
  if (Array.isArray(value)) return `[${value.map(onLine).join(", ")}]`;
  if (isObject(value)) {
    return `{${Object.entries(value)
      .map(([name, item]) => `${textOf(name)}: ${onLine(item)}`)
      .join(", ")}}`;
  }
  return String(value);
}

/** JSON string literals are valid in Python, because JSON.stringify does not escape non-ASCII characters. */
function textOf(text: string): string {
  return JSON.stringify(text);
}

export function pythonOf(known: Definition, origin: string): string {
  const { target } = known;
  if (target.kind === "event" || target.kind === "celery") {
    return requestOf(known, origin);
  }
  const [when, imported] = whenOf(known.trigger);
  const { name: _name, trigger: _trigger, target: _target, ...others } = shortDefinitionOf(known);
  const names = ["Foliot", imported, ...(target.kind === "http" ? ["http"] : [])].sort();
  const lines = [
    pythonValue(known.name),
    target.kind === "http" ? httpOf(target) : textOf(target.name),
    `when=${when}`,
    ...(target.kind === "function" && Object.keys(target.args ?? {}).length > 0
      ? [`args=${pythonValue(target.args, 4)}`]
      : []),
    ...Object.entries(others).map(([field, value]) => `${field}=${pythonValue(value, 4)}`),
  ];
  const extra = imported === "once" ? "from datetime import datetime\n\n" : "";
  const note = target.kind === "function" ? `# ${target.name} is a function with @app.task on it.\n` : "";
  return `${extra}from foliot import ${names.join(", ")}

app = Foliot()

${note}app.schedule(
${lines.map((line) => `    ${line},\n`).join("")})
`;
}

function whenOf(trigger: Definition["trigger"]): [code: string, imported: string] {
  const zone = "timezone" in trigger && trigger.timezone !== "UTC" ? `, tz=${textOf(trigger.timezone)}` : "";
  switch (trigger.kind) {
    case "cron":
      return [`cron(${textOf(trigger.expression)}${zone})`, "cron"];
    case "interval":
      return [`every(${trigger.frequency_unit.toLowerCase()}=${trigger.frequency_time}${zone})`, "every"];
    case "once":
      return [`once(datetime.fromisoformat(${textOf(trigger.at)}))`, "once"];
    case "rrule":
      return [`rrule(${textOf(trigger.rule)}${zone})`, "rrule"];
    case "delay":
      return [`delay(${trigger.seconds})`, "delay"];
  }
}

function httpOf(target: Extract<Definition["target"], { kind: "http" }>): string {
  const parts = [
    textOf(target.url),
    ...(target.method === "POST" ? [] : [`method=${textOf(target.method)}`]),
    ...(Object.keys(target.headers ?? {}).length > 0 ? [`headers=${pythonValue(target.headers, 8)}`] : []),
    ...(target.body === null || target.body === undefined ? [] : [`body=${pythonValue(target.body, 8)}`]),
    ...(target.expected_status ? [`expected_status=${pythonValue(target.expected_status, 8)}`] : []),
  ];
  return parts.length === 1
    ? `http(${parts[0]})`
    : `http(\n${parts.map((part) => `        ${part},\n`).join("")}    )`;
}

/** An HTTP request, for target kinds that the SDK can't declare. */
function requestOf(known: Definition, origin: string): string {
  return `import os

import httpx

answer = httpx.post(
    ${textOf(`${origin}/api/v1/schedules`)},
    headers={"Authorization": f"Bearer {os.environ['FOLIOT_KEY']}"},
    json=${pythonValue(shortDefinitionOf(known), 4)},
)
answer.raise_for_status()
`;
}
