// Draft of a schedule: the values of the form's controls, and conversion from and to a definition. Pure.
//
// Values typed for one kind of trigger or target are kept while another kind is selected.

import type { Definition, Kind } from "@/api/schedule-editing";
import type { KindFields } from "@/api/types";
import { type Family, formOf, kindIn, kindPointers, valuesIn } from "@/kinds";
import type { FormContext } from "@/kinds/kind";
import { DEFAULTS } from "./definition";
import { type Length, lengthOf } from "./duration";
import { type Pair, pairsOf, Reader } from "./reader";
import type { SchemaField } from "./schema-fields";
import { wallTime } from "./wall";

/** What was typed for each kind of trigger or target, and which kind is selected. */
export interface KindDraft {
  readonly kind: string;
  /** Values of the controls, by kind. The form of a kind knows their type. */
  readonly values: Readonly<Record<string, unknown>>;
}

export interface TriggerDraft extends KindDraft {
  /** Time zone of the trigger. For triggers without one: the zone in which times are typed. */
  readonly zone: string;
}

export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly active: boolean;
  readonly priority: Definition["priority"];
  readonly queue: string;
  readonly labels: readonly Pair[];
  readonly trigger: TriggerDraft;
  readonly target: KindDraft;
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
  const zone = typeof known.trigger.timezone === "string" ? known.trigger.timezone : mine;
  const window = known.window;
  return {
    name: known.name,
    description: known.description,
    active: known.active,
    priority: known.priority,
    queue: known.queue,
    labels: pairsOf(known.labels ?? {}),
    trigger: { ...kindDraft("trigger", known.trigger, zone), zone },
    target: kindDraft("target", known.target, zone),
    start: known.start_ts ? wallTime(known.start_ts, zone) : "",
    end: known.end_ts ? wallTime(known.end_ts, zone) : "",
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
    windowZone: window?.timezone ?? zone,
    calendars: known.calendars,
  };
}

function kindDraft(family: Family, known: KindFields, zone: string): KindDraft {
  return { kind: known.kind, values: { [known.kind]: formOf(family, known.kind).valuesOf(known, zone) } };
}

// --- to a definition ---------------------------------------------------------------------------------------

export interface Read {
  readonly definition: Definition;
  /** Invalid input, by JSON pointer. */
  readonly problems: ReadonlyMap<string, string>;
}

export interface Known {
  /** The definition being edited. Instants that were not changed keep their full precision. Null: new. */
  base: Definition | null;
  /** Argument fields of the task function. Null: unknown. */
  fields: readonly SchemaField[] | null;
  /** The kinds that the server lists. */
  kinds: readonly Kind[];
}

export function readDraft(draft: Draft, known: Known): Read {
  const { base } = known;
  const reader = new Reader();
  const zone = draft.trigger.zone;
  const definition: Definition = {
    name: reader.needed("/name", draft.name, "Give it a name."),
    description: draft.description,
    active: draft.active,
    priority: draft.priority,
    queue: reader.needed("/queue", draft.queue, "Name a queue."),
    trigger: readKind("trigger", draft, reader, known),
    target: readKind("target", draft, reader, known),
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

function readKind(family: Family, draft: Draft, reader: Reader, known: Known): KindFields {
  const { kind } = draft[family];
  return {
    kind,
    ...formOf(family, kind).read(valuesIn(family, draft), reader, contextOf(family, draft, known)),
  };
}

function contextOf(family: Family, draft: Draft, { base, fields, kinds }: Known): FormContext {
  return {
    zone: draft.trigger.zone,
    before: base?.[family] ?? null,
    fields,
    kind: kindIn(kinds, family, draft[family].kind),
  };
}

/** JSON pointers of all controls of the form. */
export function shownPointers(draft: Draft, known: Known): readonly string[] {
  const kinds = FAMILIES.flatMap((family) => kindPointers(family, draft, contextOf(family, draft, known)));
  return [...STATIC, ...kinds];
}

const FAMILIES: readonly Family[] = ["trigger", "target"];

const STATIC = [
  "/name",
  "/description",
  "/queue",
  "/priority",
  "/labels",
  "/start_ts",
  "/end_ts",
  "/max_runs",
  "/timeout_seconds",
  "/jitter_seconds",
  "/misfire/grace_seconds",
  "/misfire/max_catchup",
  "/overlap/max_instances",
  "/retry",
  "/retry/max_attempts",
  "/retry/initial_delay_seconds",
  "/retry/multiplier",
  "/retry/max_delay_seconds",
  "/window",
  "/window/days_of_week",
  "/window/hours_of_day",
  "/window/timezone",
  "/calendars",
];
