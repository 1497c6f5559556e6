// Draft of a schedule: the values of the form's controls, and conversion from and to a definition. Pure.
//
// Values typed for one kind of trigger or target are kept while another kind is selected.

import type { Definition } from "@/api/schedule-editing";
import { type ArgumentField, type ArgumentsDraft, argumentsDraft, jsonOf, readArguments } from "./arguments";
import { DEFAULTS } from "./definition";
import { isObject } from "./difference";
import { type Length, lengthOf, numberOf, secondsOf } from "./duration";
import { instantAt, isZone, wallTime } from "./wall";

export type TriggerKind = Definition["trigger"]["kind"];
export type TargetKind = Definition["target"]["kind"];
type TriggerOf<K extends TriggerKind> = Extract<Definition["trigger"], { kind: K }>;
type TargetOf<K extends TargetKind> = Extract<Definition["target"], { kind: K }>;
export type FrequencyUnit = TriggerOf<"interval">["frequency_unit"];
export type HttpMethod = TargetOf<"http">["method"];

/** A name and its value, in the order of input. */
export interface Pair {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

export interface TriggerDraft {
  readonly kind: TriggerKind;
  /** Time zone of the trigger. For triggers without one: the zone in which times are typed. */
  readonly zone: string;
  readonly expression: string;
  readonly amount: string;
  readonly unit: FrequencyUnit;
  readonly at: string;
  readonly rule: string;
  readonly delay: Length;
}

export interface TargetDraft {
  readonly kind: TargetKind;
  readonly task: string;
  readonly args: ArgumentsDraft;
  readonly method: HttpMethod;
  readonly url: string;
  readonly headers: readonly Pair[];
  readonly body: string;
  readonly expected: string;
  readonly topic: string;
  readonly type: string;
  readonly data: string;
  readonly celeryTask: string;
  readonly celeryArgs: string;
  readonly celeryKwargs: string;
  readonly celeryQueue: string;
}

export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly active: boolean;
  readonly priority: Definition["priority"];
  readonly queue: string;
  readonly labels: readonly Pair[];
  readonly trigger: TriggerDraft;
  readonly target: TargetDraft;
  readonly start: string;
  readonly end: string;
  readonly maxRuns: string;
  readonly timeout: Length;
  readonly jitter: Length;
  readonly misfire: Definition["misfire"]["policy"];
  readonly grace: Length;
  readonly maxCatchup: string;
  readonly overlap: Definition["overlap"]["policy"];
  readonly maxInstances: string;
  readonly attempts: string;
  readonly firstDelay: Length;
  readonly multiplier: string;
  readonly mostDelay: Length;
  readonly hasRetryJitter: boolean;
  readonly delivery: Definition["delivery"];
  readonly gap: Definition["dst"]["gap"];
  readonly repeat: Definition["dst"]["repeat"];
  readonly hasWindow: boolean;
  readonly days: readonly number[];
  readonly hours: readonly number[];
  readonly windowZone: string;
  readonly calendars: readonly string[];
}

export const ALL_DAYS: readonly number[] = [1, 2, 3, 4, 5, 6, 7];
export const ALL_HOURS: readonly number[] = Array.from({ length: 24 }, (_, hour) => hour);
const WORK_HOURS = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17];

// --- from a definition -----------------------------------------------------------------------------------

/** Draft of a new schedule for a user in this zone. */
export function blankDraft(zone: string): Draft {
  const trigger = { kind: "cron", expression: "0 9 * * MON-FRI", timezone: zone } as const;
  const target = { kind: "function", name: "", args: {} } as const;
  return draftOf({ ...DEFAULTS, name: "", trigger, target }, zone);
}

export function draftOf(known: Definition, mine: string): Draft {
  const trigger = triggerDraftOf(known.trigger, mine);
  const window = known.window;
  return {
    name: known.name,
    description: known.description,
    active: known.active,
    priority: known.priority,
    queue: known.queue,
    labels: pairsOf(known.labels ?? {}),
    trigger,
    target: targetDraftOf(known.target),
    start: known.start_ts ? wallTime(known.start_ts, trigger.zone) : "",
    end: known.end_ts ? wallTime(known.end_ts, trigger.zone) : "",
    maxRuns: known.max_runs === null ? "" : String(known.max_runs),
    timeout: lengthOf(known.timeout_seconds),
    jitter: lengthOf(known.jitter_seconds),
    misfire: known.misfire.policy,
    grace: lengthOf(known.misfire.grace_seconds),
    maxCatchup: String(known.misfire.max_catchup),
    overlap: known.overlap.policy,
    maxInstances: String(known.overlap.max_instances),
    attempts: String(known.retry.max_attempts),
    firstDelay: lengthOf(known.retry.initial_delay_seconds),
    multiplier: String(known.retry.multiplier),
    mostDelay: lengthOf(known.retry.max_delay_seconds),
    hasRetryJitter: known.retry.jitter,
    delivery: known.delivery,
    gap: known.dst.gap,
    repeat: known.dst.repeat,
    hasWindow: window !== null,
    days: window?.days_of_week ?? [1, 2, 3, 4, 5],
    hours: window?.hours_of_day ?? WORK_HOURS,
    windowZone: window?.timezone ?? trigger.zone,
    calendars: known.calendars,
  };
}

function triggerDraftOf(known: Definition["trigger"], mine: string): TriggerDraft {
  const zone = "timezone" in known ? known.timezone : mine;
  return {
    kind: known.kind,
    zone,
    expression: known.kind === "cron" ? known.expression : "0 9 * * MON-FRI",
    amount: known.kind === "interval" ? String(known.frequency_time) : "15",
    unit: known.kind === "interval" ? known.frequency_unit : "MINUTES",
    at: known.kind === "once" ? wallTime(known.at, zone) : "",
    rule: known.kind === "rrule" ? known.rule : "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
    delay: lengthOf(known.kind === "delay" ? known.seconds : 30),
  };
}

function targetDraftOf(known: Definition["target"]): TargetDraft {
  const http = known.kind === "http" ? known : null;
  const event = known.kind === "event" ? known : null;
  const celery = known.kind === "celery" ? known : null;
  return {
    kind: known.kind,
    task: known.kind === "function" ? known.name : "",
    args: argumentsDraft(known.kind === "function" ? (known.args ?? {}) : {}),
    method: http?.method ?? "POST",
    url: http?.url ?? "",
    headers: pairsOf(http?.headers ?? {}),
    body: http === null || http.body === null || http.body === undefined ? "" : pretty(http.body),
    expected: http?.expected_status?.join(", ") ?? "",
    topic: event?.event_topic ?? "",
    type: event?.event_type ?? "",
    data:
      event === null
        ? "{}"
        : typeof event.event_data === "string"
          ? event.event_data
          : pretty(event.event_data),
    celeryTask: celery?.task ?? "",
    celeryArgs: celery === null ? "[]" : pretty(celery.args),
    celeryKwargs: celery === null ? "{}" : pretty(celery.kwargs ?? {}),
    celeryQueue: celery?.queue ?? "",
  };
}

function pretty(value: unknown): string {
  return JSON.stringify(value ?? {}, null, 2);
}

function pairsOf(known: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(known).map(([name, value], key) => ({ key, name, value }));
}

// --- to a definition ---------------------------------------------------------------------------------------

export interface Read {
  readonly definition: Definition;
  /** Invalid input, by JSON pointer. */
  readonly problems: ReadonlyMap<string, string>;
}

interface Known {
  /** The definition being edited. Instants that were not changed keep their full precision. Null: new. */
  base: Definition | null;
  /** Argument fields of the task function. Null: unknown. */
  fields: readonly ArgumentField[] | null;
}

export function readDraft(draft: Draft, { base, fields }: Known): Read {
  const reader = new Reader();
  const zone = draft.trigger.zone;
  const definition: Definition = {
    name: reader.needed("/name", draft.name, "Give it a name."),
    description: draft.description,
    active: draft.active,
    priority: draft.priority,
    queue: reader.needed("/queue", draft.queue, "Name a queue."),
    trigger: reader.trigger(draft.trigger, base?.trigger ?? null),
    target: reader.target(draft.target, fields),
    start_ts: reader.instant("/start_ts", draft.start, zone, base?.start_ts ?? null),
    end_ts: reader.instant("/end_ts", draft.end, zone, base?.end_ts ?? null),
    max_runs: draft.maxRuns.trim() === "" ? null : reader.whole("/max_runs", draft.maxRuns),
    timeout_seconds: reader.length("/timeout_seconds", draft.timeout),
    misfire: {
      policy: draft.misfire,
      grace_seconds: reader.length("/misfire/grace_seconds", draft.grace),
      max_catchup: reader.whole("/misfire/max_catchup", draft.maxCatchup),
    },
    overlap: {
      policy: draft.overlap,
      max_instances: reader.whole("/overlap/max_instances", draft.maxInstances),
      max_queued: base?.overlap.max_queued ?? 1000,
    },
    retry: {
      max_attempts: reader.whole("/retry/max_attempts", draft.attempts),
      initial_delay_seconds: reader.length("/retry/initial_delay_seconds", draft.firstDelay),
      multiplier: reader.number("/retry/multiplier", draft.multiplier),
      max_delay_seconds: reader.length("/retry/max_delay_seconds", draft.mostDelay),
      jitter: draft.hasRetryJitter,
    },
    delivery: draft.delivery,
    dst: { gap: draft.gap, repeat: draft.repeat },
    labels: reader.pairs("/labels", draft.labels),
    window: draft.hasWindow
      ? {
          days_of_week: [...draft.days],
          hours_of_day: [...draft.hours],
          timezone: reader.zone("/window/timezone", draft.windowZone),
        }
      : null,
    calendars: [...draft.calendars],
    jitter_seconds: reader.length("/jitter_seconds", draft.jitter),
  };
  return { definition, problems: reader.problems };
}

class Reader {
  readonly problems = new Map<string, string>();

  needed(pointer: string, text: string, problem: string): string {
    if (text.trim() === "") this.problems.set(pointer, problem);
    return text.trim();
  }

  number(pointer: string, text: string): number {
    const number = numberOf(text);
    if (number === null) this.problems.set(pointer, "Is not a number.");
    return number ?? 0;
  }

  whole(pointer: string, text: string): number {
    const number = this.number(pointer, text);
    if (!Number.isInteger(number)) this.problems.set(pointer, "Is not a whole number.");
    return number;
  }

  length(pointer: string, length: Length): number {
    const seconds = secondsOf(length);
    if (seconds === null) this.problems.set(pointer, "Is not a length of time.");
    return seconds ?? 0;
  }

  zone(pointer: string, text: string): string {
    const zone = this.needed(pointer, text, "Name a time zone.");
    // Not validated here: the server may know more zones than this browser.
    return zone;
  }

  instant(pointer: string, text: string, zone: string, before: string | null): string | null {
    if (text === "") {
      return null;
    }
    if (before !== null && wallTime(before, zone) === text) {
      return before;
    }
    const instant = instantAt(text, zone);
    if (instant === null) {
      const problem = isZone(zone) ? "Is not a time." : `This browser does not know the time zone ${zone}.`;
      this.problems.set(pointer, problem);
    }
    return instant;
  }

  pairs(pointer: string, pairs: readonly Pair[]): Record<string, string> {
    const made: Record<string, string> = {};
    for (const { name, value } of pairs) {
      const trimmed = name.trim();
      if (trimmed === "" && value === "") continue;
      if (trimmed === "") this.problems.set(pointer, `Name what ${value} is.`);
      else if (trimmed in made) this.problems.set(pointer, `${trimmed} is given twice.`);
      else made[trimmed] = value;
    }
    return made;
  }

  json(pointer: string, text: string): unknown {
    const read = jsonOf(text);
    if ("problem" in read) {
      this.problems.set(pointer, read.problem);
      return null;
    }
    return read.value;
  }

  trigger(draft: TriggerDraft, before: Definition["trigger"] | null): Definition["trigger"] {
    const timezone = () => this.zone("/trigger/timezone", draft.zone);
    switch (draft.kind) {
      case "cron":
        return {
          kind: "cron",
          expression: this.needed("/trigger/expression", draft.expression, "Write an expression."),
          timezone: timezone(),
        };
      case "interval":
        return {
          kind: "interval",
          frequency_unit: draft.unit,
          frequency_time: this.whole("/trigger/frequency_time", draft.amount),
          timezone: timezone(),
        };
      case "once": {
        if (draft.at === "") this.problems.set("/trigger/at", "Say when.");
        const known = before?.kind === "once" ? before.at : null;
        return { kind: "once", at: this.instant("/trigger/at", draft.at, draft.zone, known) ?? "" };
      }
      case "rrule":
        return {
          kind: "rrule",
          rule: this.needed("/trigger/rule", draft.rule, "Write a rule."),
          timezone: timezone(),
        };
      case "delay":
        return { kind: "delay", seconds: this.length("/trigger/seconds", draft.delay) };
    }
  }

  target(draft: TargetDraft, fields: readonly ArgumentField[] | null): Definition["target"] {
    switch (draft.kind) {
      case "function": {
        const { args, problems } = readArguments(draft.args, fields);
        for (const [name, problem] of Object.entries(problems)) {
          this.problems.set(name === "" ? "/target/args" : `/target/args/${name}`, problem);
        }
        const name = this.needed("/target/name", draft.task, "Choose a task function.");
        return { kind: "function", name, args: args as TargetOf<"function">["args"] & object };
      }
      case "http":
        return {
          kind: "http",
          method: draft.method,
          url: this.needed("/target/url", draft.url, "Give an address."),
          headers: this.pairs("/target/headers", draft.headers),
          body: draft.body.trim() === "" ? null : (this.json("/target/body", draft.body) as never),
          expected_status: this.codes("/target/expected_status", draft.expected),
        };
      case "event":
        return {
          kind: "event",
          event_topic: this.needed("/target/event_topic", draft.topic, "Name a topic."),
          event_type: this.needed("/target/event_type", draft.type, "Name a type."),
          event_data: this.eventData(draft.data) as never,
        };
      case "celery":
        return {
          kind: "celery",
          task: this.needed("/target/task", draft.celeryTask, "Name a task."),
          args: this.json("/target/args", draft.celeryArgs || "[]") as never,
          kwargs: this.json("/target/kwargs", draft.celeryKwargs || "{}") as never,
          queue: draft.celeryQueue.trim() || null,
        };
    }
  }

  /** Data of an event: a JSON object, else the text as typed. */
  private eventData(text: string): unknown {
    const read = text.trim() === "" ? { value: {} } : jsonOf(text);
    return "value" in read && isObject(read.value) ? read.value : text;
  }

  private codes(pointer: string, text: string): [number, ...number[]] | null {
    const parts = text.split(/[\s,]+/).filter((part) => part !== "");
    if (parts.some((part) => !/^\d{3}$/.test(part))) {
      this.problems.set(pointer, "Three digits each, such as 200, 202.");
    }
    const [first, ...others] = parts.map(Number);
    return first === undefined ? null : [first, ...others];
  }
}
