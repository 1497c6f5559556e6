// What the UI knows about a kind of trigger or target. Kinds without an entry are shown by their schema.

import type { ReactNode } from "react";
import type { Kind } from "@/api/schedule-editing";
import type { KindFields } from "@/api/types";
import type { Reader } from "@/screens/schedule-form/reader";
import type { SchemaField } from "@/screens/schedule-form/schema-fields";
import type { IconName } from "@/ui/Icon";

export type Family = Kind["family"];

/** What is known while a form is read. */
export interface FormContext {
  /** Time zone of the trigger, in which times are typed. */
  readonly zone: string;
  /** The trigger or target that is edited. Null: new. */
  readonly before: KindFields | null;
  /** Argument fields of the chosen task function. Null: unknown. */
  readonly fields: readonly SchemaField[] | null;
  /** The kind as the server lists it. Null: it does not, or has not answered yet. */
  readonly kind: Kind | null;
}

export interface FieldsProps<V> {
  values: V;
  change: (changes: Partial<V>) => void;
}

/** The form of a kind. `D`: its document. `V`: the values of its controls. */
export interface KindForm<D extends KindFields = KindFields, V = unknown> {
  /** Values for a document. Null: for a new one. */
  valuesOf(known: D | null, zone: string): V;
  read(values: V, reader: Reader, context: FormContext): Omit<D, "kind">;
  /** Fields that show their own problems, as paths within the document. */
  shown(values: V, context: FormContext): readonly string[];
  Fields(props: FieldsProps<V>): ReactNode;
}

/** CLI options, each with its values. */
export type Options = [string, ...string[]][];

export interface PythonCode {
  readonly code: string;
  /** Names to import from foliot. */
  readonly names: readonly string[];
}

export interface TriggerKind<D extends KindFields = KindFields, V = unknown> extends KindForm<D, V> {
  readonly label: string;
  /** Label of the control for the time zone. Null: the trigger needs none. */
  zoneLabel(values: V): string | null;
  /** The trigger as the user wrote it, in short. */
  expression(known: D): string;
  /** Whether its times are the same in every time zone. */
  isElapsed?(known: D): boolean;
  /** Whether its times depend on the id or the name of the schedule. */
  isHashed?(known: D): boolean;
  /** Whether it names times of day, so that the rules for clock changes matter. */
  readonly hasWallTimes?: boolean;
  /** Why an active schedule may have no next time. */
  readonly whyNoNext?: string;
  python(known: D): PythonCode;
  options(known: D): Options;
}

export interface TargetKind<D extends KindFields = KindFields, V = unknown> extends KindForm<D, V> {
  readonly label: string;
  readonly icon: IconName;
  /** In a list: on one short line. */
  line(known: D): string;
  /** On the page of the schedule: the line, if it needs more room, and the other fields. */
  title?(known: D): string;
  details(known: D): readonly (readonly [name: string, value: unknown])[];
  /** Null: the SDK can't declare it. `lines`: further arguments of app.schedule. */
  python(known: D): (PythonCode & { lines?: readonly string[]; note?: string }) | null;
  /** Null: options can't express it. */
  options(known: D): Options | null;
}
