// Form fields. Each has a label, an optional hint, and shows its own error.
//
//     <TextField label="Name" value={name} onChange={setName} problem={problemOf(error, "/name")} />

import { type ComponentProps, type ReactNode, useId } from "react";
import type { FieldProblem } from "@/api/problem";
import { Icon } from "./Icon";

const CONTROL =
  "border-control bg-surface text-ink placeholder:text-ink-faint w-full rounded-md border text-sm shadow-low " +
  "aria-invalid:border-danger focus-visible:outline-offset-0";

interface Shared {
  label: ReactNode;
  hint?: ReactNode;
  problem?: FieldProblem | null;
}

interface Wired {
  id: string;
  "aria-invalid": true | undefined;
  "aria-describedby": string | undefined;
}

function Labelled({ label, hint, problem, children }: Shared & { children: (wired: Wired) => ReactNode }) {
  const id = useId();
  const describedBy = [hint ? `${id}-hint` : "", problem ? `${id}-problem` : ""].filter(Boolean).join(" ");
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        "aria-invalid": problem ? true : undefined,
        "aria-describedby": describedBy || undefined,
      })}
      {problem && (
        <p id={`${id}-problem`} className="text-danger flex items-start gap-1.5 text-xs">
          <Icon name="warning" size={14} className="mt-0.5" />
          <span>
            {problem.text} {problem.hint}
          </span>
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="text-ink-faint text-xs">
          {hint}
        </p>
      )}
    </div>
  );
}

type Input = Omit<ComponentProps<"input">, "value" | "onChange" | "id">;

interface TextFieldProps extends Shared, Input {
  value: string;
  onChange: (value: string) => void;
}

export function TextField({
  label,
  hint,
  problem = null,
  value,
  onChange,
  className = "",
  ...rest
}: TextFieldProps) {
  return (
    <Labelled label={label} hint={hint} problem={problem}>
      {(wired) => (
        <input
          {...rest}
          {...wired}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          className={`${CONTROL} h-9 px-2.5 ${className}`}
        />
      )}
    </Labelled>
  );
}

interface TextAreaProps extends Shared, Omit<ComponentProps<"textarea">, "value" | "onChange" | "id"> {
  value: string;
  onChange: (value: string) => void;
}

export function TextArea({
  label,
  hint,
  problem = null,
  value,
  onChange,
  className = "",
  ...rest
}: TextAreaProps) {
  return (
    <Labelled label={label} hint={hint} problem={problem}>
      {(wired) => (
        <textarea
          {...rest}
          {...wired}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          className={`${CONTROL} px-2.5 py-2 ${className}`}
        />
      )}
    </Labelled>
  );
}

interface SelectProps<T extends string> extends Shared {
  value: T;
  choices: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
}

export function SelectField<T extends string>({
  label,
  hint,
  problem = null,
  value,
  choices,
  onChange,
}: SelectProps<T>) {
  return (
    <Labelled label={label} hint={hint} problem={problem}>
      {(wired) => (
        <select
          {...wired}
          value={value}
          onChange={(event) => onChange(event.target.value as T)}
          className={`${CONTROL} h-9 px-2`}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

/** The error of a form as a whole; null: none. */
export function FormProblem({ text }: { text: string | null }) {
  return (
    <div role="alert" className="empty:hidden">
      {text !== null && (
        <p className="bg-danger-soft text-danger flex items-start gap-2 rounded-md px-3 py-2 text-sm">
          <Icon name="warning" className="mt-0.5" />
          <span className="min-w-0 break-words">{text}</span>
        </p>
      )}
    </div>
  );
}
