// A schedule as a CLI command and as a curl request. Pure functions.

import type { Definition } from "@/api/schedule-editing";
import { targetKind, triggerKind } from "@/kinds";
import type { Options } from "@/kinds/kind";
import { shortDefinitionOf } from "../../schedule-form/definition";
import { isObject, isSame } from "../../schedule-form/difference";
import { zoneOf } from "../../schedules/words";
import { yamlOf } from "./yaml";

/** Quote text as one shell word. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** CLI command that creates the schedule: with options if they suffice, else with the definition as YAML. */
export function commandOf(known: Definition): string {
  const options = optionsOf(known);
  if (options === null) {
    const { name: _name, ...rest } = shortDefinitionOf(known);
    return `foliot schedule create ${quoted(known.name)} -f - <<'YAML'\n${yamlOf(rest)}YAML\n`;
  }
  const lines = options.map((words) => `  ${words.map(quoted).join(" ")}`);
  return [`foliot schedule create ${quoted(known.name)}`, ...lines].join(" \\\n");
}

/** CLI options of a schedule. Null: options can't express it. */
function optionsOf(known: Definition): Options | null {
  const when = triggerKind(known.trigger.kind)?.options(known.trigger) ?? null;
  const what = targetKind(known.target.kind)?.options(known.target) ?? null;
  const others = otherOptions(shortDefinitionOf(known), known);
  return when === null || what === null || others === null ? null : [...when, ...what, ...others];
}

function otherOptions(told: Partial<Definition>, known: Definition): Options | null {
  const found: Options = [];
  for (const name of Object.keys(told) as (keyof Definition)[]) {
    const some = optionsOfField(name, known);
    if (some === null) return null;
    found.push(...some);
  }
  return found;
}

const DAY_NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

function optionsOfField(name: keyof Definition, known: Definition): Options | null {
  switch (name) {
    case "name":
    case "trigger":
    case "target":
      return [];
    case "description":
    case "queue":
    case "priority":
    case "delivery":
      return [[`--${name}`, String(known[name])]];
    case "active":
      return [["--no-active"]];
    case "start_ts":
      return [["--start", String(known.start_ts)]];
    case "end_ts":
      return [["--end", String(known.end_ts)]];
    case "max_runs":
      return [["--max-runs", String(known.max_runs)]];
    case "timeout_seconds":
      return [["--timeout", `${known.timeout_seconds}s`]];
    case "jitter_seconds":
      return [["--jitter", `${known.jitter_seconds}s`]];
    case "misfire":
      return [
        ["--misfire", known.misfire.policy],
        ["--grace", `${known.misfire.grace_seconds}s`],
        ...(known.misfire.policy === "fire_all"
          ? ([["--max-catchup", String(known.misfire.max_catchup)]] as Options)
          : []),
      ];
    case "overlap":
      return [
        ["--overlap", known.overlap.policy],
        ...(known.overlap.max_instances === 1
          ? []
          : ([["--max-instances", String(known.overlap.max_instances)]] as Options)),
        ...(known.overlap.max_queued === 1000
          ? []
          : ([["--max-queued", String(known.overlap.max_queued)]] as Options)),
      ];
    case "retry": {
      const { max_attempts, ...waits } = known.retry;
      const usual = { initial_delay_seconds: 1, multiplier: 2, max_delay_seconds: 30, jitter: true };
      return isSame(waits, usual) ? [["--retries", String(max_attempts - 1)]] : null;
    }
    case "dst":
      return [
        ["--dst-gap", known.dst.gap],
        ["--dst-repeat", known.dst.repeat],
      ];
    case "labels":
      return Object.entries(known.labels ?? {}).map(([label, value]) => ["--label", `${label}=${value}`]);
    case "calendars":
      return known.calendars.map((calendar) => ["--calendar", calendar]);
    case "window": {
      const zone = zoneOf(known.trigger);
      if (known.window === null || known.window.timezone !== zone) return null;
      return [
        ["--days", known.window.days_of_week.map((day) => DAY_NAMES[day - 1]).join(",")],
        ["--hours", known.window.hours_of_day.join(",")],
      ];
    }
  }
}

export function curlOf(known: Definition, origin: string): string {
  const body = JSON.stringify(shortDefinitionOf(known), null, 2);
  return [
    `curl -X POST ${origin}/api/v1/schedules`,
    '  -H "Authorization: Bearer $FOLIOT_KEY"',
    "  -H 'Content-Type: application/json'",
    `  --data-raw ${quoted(body)}`,
  ].join(" \\\n");
}

export function yamlFileOf(known: Definition): string {
  const told = shortDefinitionOf(known);
  return yamlOf({ schedules: [isObject(told) ? told : {}] });
}
