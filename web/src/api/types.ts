// Short names for the API's types. All are derived from the schema generated from openapi.json.

import type { components } from "./schema";

type Schemas = components["schemas"];

export type Me = Schemas["MeDocument"];
export type Role = Schemas["Role"];
/** A trigger or a target: its kind, and the fields of that kind. Plug-ins of the server add kinds. */
export interface KindFields {
  readonly kind: string;
  readonly [field: string]: unknown;
}
export type Trigger = KindFields;
export type Target = KindFields;
/** A document with a trigger and a target of any kind. The generated types list only the built-in kinds. */
export type OfAnyKind<T> = Omit<T, "trigger" | "target"> & { trigger: Trigger; target: Target };
export type FunctionTarget = Schemas["FunctionTarget"];
export type Schedule = OfAnyKind<Schemas["ScheduleDocument"]>;
export type ListedSchedule = OfAnyKind<Schemas["ListedScheduleDocument"]>;
export type RecentExecution = Schemas["RecentExecutionDocument"];
export type ScheduleState = Schemas["ScheduleState"];
export type ScheduleFilter = Partial<
  Omit<Schemas["ScheduleFilterForm"], "target"> & { target: readonly string[] }
>;
export type ManagedBy = Schemas["ManagedBy"];
export type Execution = Schemas["ExecutionDocument"];
export type Status = Schemas["Status"];
export type ClusterStatus = Schemas["StatusDocument"] & {
  /** Queues with waiting work that no live worker serves; left out by older servers. */
  unserved_queues?: readonly { queue: string; waiting: number; oldest_ready_ts: string | null }[];
};
export type Failure = Schemas["FailureDocument"];
export type NextFire = Schemas["NextFireDocument"];
export type Instance = Schemas["InstanceDocument"];
export type RecentLoad = Schemas["RecentDocument"];
export type Minute = Schemas["MinuteDocument"];
export type ScheduleBulk = Schemas["ScheduleBulk"];
export type TriggerNow = Schemas["TriggerNow"];
export type BulkDone = Schemas["BulkDone"];
export type ScheduleAct = Schemas["ScheduleAct"];
export type ProblemDocument = Schemas["Problem"];

export const STATUSES = [
  "pending",
  "running",
  "retrying",
  "success",
  "failed",
  "timeout",
  "cancelled",
  "skipped",
  "unknown",
] as const satisfies readonly Status[];

export const SCHEDULE_STATES = [
  "active",
  "paused",
  "inactive",
  "completed",
  "error",
] as const satisfies readonly ScheduleState[];

export const ROLES = ["viewer", "operator", "editor", "admin"] as const satisfies readonly Role[];

/** Final statuses that mean that something went wrong. */
export const BAD_STATUSES = ["failed", "timeout", "unknown"] as const satisfies readonly Status[];

export function isFunction(target: Target): target is FunctionTarget {
  return target.kind === "function";
}

export function isOpen(status: Status): boolean {
  return status === "pending" || status === "running" || status === "retrying";
}

export function isBad(status: Status): boolean {
  return BAD_STATUSES.some((each) => each === status);
}
