// All kinds of triggers and targets: the built-in ones with their own forms, others by their JSON schema.
//
// The server lists the kinds that can be chosen. A kind that has no entry in triggers.tsx or targets.tsx gets a
// form from its schema, and is described by its display name and its fields as JSON.

import { useQuery } from "@tanstack/react-query";
import { type Kind, kinds as kindsQuery } from "@/api/schedule-editing";
import type { KindFields, Target, Trigger } from "@/api/types";
import type { Draft } from "@/screens/schedule-form/draft";
import { useForm } from "@/screens/schedule-form/form";
import { SchemaForm } from "@/screens/schedule-form/SchemaForm";
import {
  fieldsOf,
  type ObjectDraft,
  objectDraft,
  readObject,
  type SchemaField,
  shownPaths,
} from "@/screens/schedule-form/schema-fields";
import { zoneOf } from "@/screens/schedules/words";
import type { IconName } from "@/ui/Icon";
import type { Family, FormContext, KindForm, TargetKind, TriggerKind } from "./kind";
import { TARGETS } from "./targets";
import { TRIGGERS } from "./triggers";

export type { Family, KindForm } from "./kind";

const BUILT_IN = { trigger: TRIGGERS, target: TARGETS } as const;
export const OTHER_ICON: IconName = "code";

/** Entry of a built-in kind. Null: a plug-in of the server added it. */
export function triggerKind(kind: string): TriggerKind | null {
  return TRIGGERS.get(kind) ?? null;
}

export function targetKind(kind: string): TargetKind | null {
  return TARGETS.get(kind) ?? null;
}

export function isBuiltIn(family: Family, kind: string): boolean {
  return BUILT_IN[family].has(kind);
}

// --- names ---------------------------------------------------------------------------------------------

export interface KindChoice {
  readonly value: string;
  readonly label: string;
  readonly icon?: IconName;
  /** Null: it can be chosen. */
  readonly whyNot: string | null;
}

/** The kinds to choose from: those of the server, built-in ones first. `present` is always among them. */
export function kindChoices(
  family: Family,
  listed: readonly Kind[],
  present: readonly string[],
): KindChoice[] {
  const own = listed.filter((kind) => kind.family === family);
  const named = new Set(own.length === 0 ? BUILT_IN[family].keys() : own.map((kind) => kind.name));
  const builtIn = [...BUILT_IN[family].keys()].filter((name) => named.has(name));
  return [...new Set([...builtIn, ...named, ...present])].map((value) => ({
    value,
    label: labelOf(family, value, listed),
    icon: family === "target" ? (targetKind(value)?.icon ?? OTHER_ICON) : undefined,
    whyNot:
      own.find((kind) => kind.name === value)?.is_available === false
        ? "this server can't carry it out."
        : null,
  }));
}

export function labelOf(family: Family, name: string, listed: readonly Kind[]): string {
  return BUILT_IN[family].get(name)?.label ?? kindIn(listed, family, name)?.display_name ?? name;
}

/** The kinds as the server lists them. Empty until it has answered. */
export function useKinds(): readonly Kind[] {
  return useQuery(kindsQuery).data?.items ?? NONE;
}

const NONE: readonly Kind[] = [];

export function kindIn(listed: readonly Kind[], family: Family, name: string): Kind | null {
  return listed.find((kind) => kind.family === family && kind.name === name) ?? null;
}

// --- descriptions --------------------------------------------------------------------------------------

/** Time zone to show. Null for intervals of hours or less: they are the same in every zone. */
export function shownZoneOf(trigger: Trigger): string | null {
  return triggerKind(trigger.kind)?.isElapsed?.(trigger) ? null : zoneOf(trigger);
}

/** The trigger as the user wrote it. */
export function expressionOf(trigger: Trigger): string {
  return triggerKind(trigger.kind)?.expression(trigger) ?? trigger.kind;
}

export function targetOf(target: Target): string {
  return targetKind(target.kind)?.line(target) ?? JSON.stringify(withoutKind(target));
}

export function withoutKind({ kind: _kind, ...fields }: KindFields): Record<string, unknown> {
  return fields;
}

// --- forms ---------------------------------------------------------------------------------------------

export function formOf(family: Family, kind: string): KindForm {
  return BUILT_IN[family].get(kind) ?? SCHEMA_FORMS[family];
}

/** Values of the controls of the selected kind. */
export function valuesIn(family: Family, draft: Pick<Draft, Family>): unknown {
  const { kind, values } = draft[family];
  return values[kind] ?? formOf(family, kind).valuesOf(null, draft.trigger.zone);
}

/** JSON pointers of the controls of the selected kind. */
export function kindPointers(
  family: Family,
  draft: Pick<Draft, Family>,
  context: FormContext,
): readonly string[] {
  const paths = ["kind", ...formOf(family, draft[family].kind).shown(valuesIn(family, draft), context)];
  return [`/${family}`, ...paths.map((path) => `/${family}/${path}`)];
}

/** Fields of a kind by its schema, without the name of the kind. Null: the schema is not known. */
function kindFields(kind: Kind | null, zone: string): readonly SchemaField[] | null {
  return (kind && fieldsOf(kind.schema, zone)?.filter((field) => field.name !== "kind")) ?? null;
}

function schemaForm(family: Family): KindForm<KindFields, ObjectDraft> {
  return {
    valuesOf: (known) => objectDraft(known === null ? {} : withoutKind(known)),
    read: (values, reader, { kind, zone }) => {
      const { value, problems } = readObject(values, kindFields(kind, zone));
      reader.add(`/${family}`, problems);
      return value;
    },
    shown: (values, { kind, zone }) => shownPaths(values, kindFields(kind, zone)),
    Fields({ values, change }) {
      const { draft, kinds, problem } = useForm();
      const name = draft[family].kind;
      const kind = kindIn(kinds, family, name);
      return (
        <>
          {kind !== null && <p className="text-ink-soft text-sm">{kind.description}</p>}
          <SchemaForm
            title={labelOf(family, name, kinds)}
            none="It has no fields."
            fields={kindFields(kind, draft.trigger.zone)}
            draft={values}
            onChange={change}
            problem={(path) => problem(path === "" ? `/${family}` : `/${family}/${path}`)}
          />
        </>
      );
    },
  };
}

const SCHEMA_FORMS: Readonly<Record<Family, KindForm>> = {
  trigger: schemaForm("trigger"),
  target: schemaForm("target"),
};
