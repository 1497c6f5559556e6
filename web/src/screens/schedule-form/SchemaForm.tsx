import { useId } from "react";
import type { FieldProblem } from "@/api/problem";
import { Button } from "@/ui/Button";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { ProblemLine } from "./controls";
import { isObject } from "./difference";
import {
  type JsonObject,
  type ObjectDraft,
  objectDraft,
  readObject,
  type SchemaField,
  textIn,
} from "./schema-fields";

interface Props {
  title: string;
  /** Shown if the schema has no fields. */
  none: string;
  /** Null: no schema; the object is typed as JSON. */
  fields: readonly SchemaField[] | null;
  /** True: fields are labelled with their names in code. False: with their titles. */
  isCode?: boolean;
  draft: ObjectDraft;
  onChange: (draft: ObjectDraft) => void;
  /** The problem of a field, by its path; "" is for the object as a whole. */
  problem: (path: string) => FieldProblem | null;
}

/** Form for a JSON object, built from its schema: arguments of a task function, or fields of a kind. */
export function SchemaForm({ title, none, fields, isCode = false, draft, onChange, problem }: Props) {
  const isJson = draft.json !== null || fields === null;
  function toJson() {
    onChange({ ...draft, json: JSON.stringify(readObject(draft, fields).value, null, 2) });
  }
  function toFields() {
    const { value, problems } = readObject(draft, fields);
    if (Object.keys(problems).length === 0) onChange(objectDraft(value));
  }
  if (fields?.length === 0 && draft.json === null && Object.keys(draft.value).length === 0) {
    return <p className="text-ink-soft text-sm">{none}</p>;
  }
  return (
    <fieldset className="border-line flex min-w-0 flex-col gap-3 rounded-lg border p-3">
      <legend className="sr-only">{title}</legend>
      <div className="flex items-center">
        <span className="text-sm font-semibold" aria-hidden="true">
          {title}
        </span>
        {fields !== null && (
          <Button look="link" size="small" className="ml-auto" onClick={isJson ? toFields : toJson}>
            {isJson ? "By fields" : "As JSON"}
          </Button>
        )}
      </div>
      {isJson ? (
        <TextArea
          label={`${title} as JSON`}
          rows={6}
          spellCheck={false}
          className="font-mono text-xs"
          value={draft.json ?? JSON.stringify(draft.value, null, 2)}
          onChange={(json) => onChange({ ...draft, json })}
          problem={problem("")}
        />
      ) : (
        <>
          <Inputs
            fields={fields}
            value={draft.value}
            texts={draft.texts}
            isCode={isCode}
            onText={(path, text) => onChange({ ...draft, texts: { ...draft.texts, [path]: text } })}
            problem={problem}
          />
          <ProblemLine problem={problem("")} />
        </>
      )}
    </fieldset>
  );
}

interface InputsProps extends Pick<Props, "problem"> {
  fields: readonly SchemaField[];
  /** Existing values of these fields. */
  value: JsonObject;
  texts: ObjectDraft["texts"];
  isCode: boolean;
  onText: (path: string, text: string) => void;
}

function Inputs({ fields, value, ...shared }: InputsProps) {
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      {fields.map((field) => {
        const own = value[field.name];
        return field.input.kind === "group" ? (
          <GroupInput key={field.path} field={field} {...shared} fields={field.input.fields} value={own} />
        ) : (
          <FieldInput
            key={field.path}
            field={field}
            isCode={shared.isCode}
            text={textIn(shared.texts, field, own)}
            onChange={(text) => shared.onText(field.path, text)}
            problem={shared.problem(field.path)}
          />
        );
      })}
    </div>
  );
}

interface GroupInputProps extends Omit<InputsProps, "value"> {
  field: SchemaField;
  value: unknown;
}

function GroupInput({ field, value, ...shared }: GroupInputProps) {
  const id = useId();
  const problem = shared.problem(field.path);
  const describedBy = [field.hint ? `${id}-hint` : "", problem ? `${id}-problem` : ""]
    .filter(Boolean)
    .join(" ");
  return (
    <fieldset
      aria-describedby={describedBy || undefined}
      className="border-line flex min-w-0 flex-col gap-2 border-l-2 pl-3 sm:col-span-2"
    >
      <legend className="text-sm font-medium">
        <Label field={field} isCode={shared.isCode} />
      </legend>
      {field.hint && (
        <p id={`${id}-hint`} className="text-ink-faint text-xs">
          {field.hint}
        </p>
      )}
      <Inputs {...shared} value={isObject(value) ? value : {}} />
      <ProblemLine id={`${id}-problem`} problem={problem} />
    </fieldset>
  );
}

function Label({ field, isCode }: { field: SchemaField; isCode: boolean }) {
  return (
    <span className={isCode ? "font-mono text-xs" : undefined}>
      {isCode ? field.name : field.title}
      {field.isRequired && <span className="text-ink-faint font-sans"> (required)</span>}
    </span>
  );
}

interface InputProps {
  field: SchemaField;
  isCode: boolean;
  text: string;
  onChange: (text: string) => void;
  problem: FieldProblem | null;
}

function FieldInput({ field, isCode, text, onChange, problem }: InputProps) {
  const { input, fallback } = field;
  const standard = fallback === undefined ? undefined : `default: ${shownText(fallback)}`;
  const shared = {
    label: <Label field={field} isCode={isCode} />,
    problem,
    hint: field.hint || undefined,
  };
  switch (input.kind) {
    case "choice":
    case "flag": {
      const values = input.kind === "flag" ? [true, false] : input.values;
      return (
        <SelectField
          {...shared}
          value={text}
          onChange={onChange}
          choices={[
            { value: "", label: field.isRequired ? "Choose…" : (standard ?? "left out") },
            ...values.map((value) => ({
              value: JSON.stringify(value),
              label: shownText(value),
            })),
          ]}
        />
      );
    }
    case "list":
    case "json": {
      const form = input.kind === "list" ? "one per line" : "JSON";
      return (
        <div className="sm:col-span-2">
          <TextArea
            {...shared}
            rows={2}
            value={text}
            onChange={onChange}
            spellCheck={false}
            placeholder={standard ? `${form}; ${standard}` : form}
            className="font-mono text-xs"
          />
        </div>
      );
    }
    case "time":
      return (
        <TextField
          {...shared}
          type="datetime-local"
          step={1}
          value={text}
          onChange={onChange}
          hint={[field.hint, `In ${input.zone}.`, standard && `Left empty: ${standard}.`]
            .filter(Boolean)
            .join(" ")}
        />
      );
    case "text":
      return input.isLong ? (
        <div className="sm:col-span-2">
          <TextArea {...shared} rows={3} value={text} onChange={onChange} placeholder={standard} />
        </div>
      ) : (
        <TextField {...shared} value={text} onChange={onChange} autoComplete="off" placeholder={standard} />
      );
    case "number":
      return (
        <TextField
          {...shared}
          value={text}
          onChange={onChange}
          inputMode="decimal"
          autoComplete="off"
          placeholder={standard}
        />
      );
    case "group":
      return null; // GroupInput shows it
  }
}

function shownText(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
