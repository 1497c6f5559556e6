// A schedule as Python code. Pure functions.

import type { Definition } from "@/api/schedule-editing";
import { targetKind, triggerKind } from "@/kinds";
import { shortDefinitionOf } from "../../schedule-form/definition";
import { pythonText, pythonValue } from "./python-value";

export function pythonOf(known: Definition, origin: string): string {
  const what = targetKind(known.target.kind)?.python(known.target) ?? null;
  if (what === null) {
    return requestOf(known, origin);
  }
  const when = triggerKind(known.trigger.kind)?.python(known.trigger) ?? {
    code: pythonValue(known.trigger, 4),
    names: [],
  };
  const { name: _name, trigger: _trigger, target: _target, ...others } = shortDefinitionOf(known);
  const names = ["Foliot", ...when.names, ...what.names].sort();
  const lines = [
    pythonText(known.name),
    what.code,
    `when=${when.code}`,
    ...(what.lines ?? []),
    ...Object.entries(others).map(([field, value]) => `${field}=${pythonValue(value, 4)}`),
  ];
  const extra = when.code.includes("datetime.") ? "from datetime import datetime\n\n" : "";
  return `${extra}from foliot import ${names.join(", ")}

app = Foliot()

${what.note ?? ""}app.schedule(
${lines.map((line) => `    ${line},\n`).join("")})
`;
}

/** An HTTP request, for target kinds that the SDK can't declare. */
function requestOf(known: Definition, origin: string): string {
  return `import os

import httpx

answer = httpx.post(
    ${pythonText(`${origin}/api/v1/schedules`)},
    headers={"Authorization": f"Bearer {os.environ['FOLIOT_KEY']}"},
    json=${pythonValue(shortDefinitionOf(known), 4)},
)
answer.raise_for_status()
`;
}
