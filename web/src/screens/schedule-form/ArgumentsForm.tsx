import type { FieldProblem } from "@/api/problem";
import { Button } from "@/ui/Button";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { type ArgumentField, type ArgumentsDraft, argumentsDraft, readArguments, textIn } from "./arguments";
import { ProblemLine } from "./controls";

interface Props {
  /** Null: no schema; arguments are typed as JSON. */
  fields: readonly ArgumentField[] | null;
  draft: ArgumentsDraft;
  onChange: (draft: ArgumentsDraft) => void;
  /** The problem of an argument, by its name; "" is for all arguments together. */
  problem: (name: string) => FieldProblem | null;
}

/** Form for the arguments of a task function, built from its JSON schema. */
export function ArgumentsForm({ fields, draft, onChange, problem }: Props) {
  const isJson = draft.json !== null || fields === null;
  function toJson() {
    onChange({ ...draft, json: JSON.stringify(readArguments(draft, fields).args, null, 2) });
  }
  function toFields() {
    const { args, problems } = readArguments(draft, fields);
    if (Object.keys(problems).length === 0) onChange(argumentsDraft(args));
  }
  if (
    fields !== null &&
    fields.length === 0 &&
    draft.json === null &&
    Object.keys(draft.value).length === 0
  ) {
    return <p className="text-ink-soft text-sm">It takes no arguments.</p>;
  }
  return (
    <fieldset className="border-line flex min-w-0 flex-col gap-3 rounded-lg border p-3">
      <legend className="sr-only">Arguments</legend>
      <div className="flex items-center">
        <span className="text-sm font-semibold" aria-hidden="true">
          Arguments
        </span>
        {fields !== null && (
          <Button look="link" size="small" className="ml-auto" onClick={isJson ? toFields : toJson}>
            {isJson ? "By fields" : "As JSON"}
          </Button>
        )}
      </div>
      {isJson ? (
        <TextArea
          label="Arguments as JSON"
          rows={6}
          spellCheck={false}
          className="font-mono text-xs"
          value={draft.json ?? JSON.stringify(draft.value, null, 2)}
          onChange={(json) => onChange({ ...draft, json })}
          problem={problem("")}
        />
      ) : (
        <>
          <div className="grid gap-3 sm:grid-cols-2">
            {fields.map((field) => (
              <ArgumentInput
                key={field.name}
                field={field}
                text={textIn(draft, field)}
                onChange={(text) => onChange({ ...draft, texts: { ...draft.texts, [field.name]: text } })}
                problem={problem(field.name)}
              />
            ))}
          </div>
          <ProblemLine problem={problem("")} />
        </>
      )}
    </fieldset>
  );
}

interface InputProps {
  field: ArgumentField;
  text: string;
  onChange: (text: string) => void;
  problem: FieldProblem | null;
}

function ArgumentInput({ field, text, onChange, problem }: InputProps) {
  const { input, fallback } = field;
  const standard = fallback === undefined ? undefined : `default: ${shownText(fallback)}`;
  const shared = {
    label: (
      <span className="font-mono text-xs">
        {field.label}
        {field.isRequired && <span className="text-ink-faint font-sans"> (required)</span>}
      </span>
    ),
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
    case "json":
      return (
        <div className="sm:col-span-2">
          <TextArea
            {...shared}
            rows={2}
            value={text}
            onChange={onChange}
            spellCheck={false}
            placeholder={standard ? `JSON; ${standard}` : "JSON"}
            className="font-mono text-xs"
          />
        </div>
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
  }
}

function shownText(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
