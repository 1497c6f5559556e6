// Form controls beyond the shared ones: choices in a row, small inputs in a sentence, name-value pairs.

import { type ReactNode, useId } from "react";
import type { FieldProblem } from "@/api/problem";
import { Button, IconButton } from "@/ui/Button";
import { Icon, type IconName } from "@/ui/Icon";

import { type Length, UNIT_WORDS, UNITS, type Unit } from "./duration";
import type { Pair } from "./reader";
import { zoneNames } from "./wall";

const INPUT =
  "border-control bg-surface text-ink placeholder:text-ink-faint rounded-md border text-sm shadow-low " +
  "aria-invalid:border-danger focus-visible:outline-offset-0";

export function ProblemLine({ id, problem }: { id?: string; problem: FieldProblem | null }) {
  return problem === null ? null : (
    <p id={id} className="text-danger flex items-start gap-1.5 text-xs">
      <Icon name="warning" size={14} className="mt-0.5" />
      <span className="min-w-0 break-words">
        {problem.text} {problem.hint}
      </span>
    </p>
  );
}

// --- groups --------------------------------------------------------------------------------------------

interface GroupProps {
  title: string;
  note?: ReactNode;
  children: ReactNode;
}

export function Group({ title, note, children }: GroupProps) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className="border-line flex flex-col gap-4 border-b py-5 first:pt-1 last:border-b-0"
    >
      <div>
        <h3 id={id} className="font-semibold">
          {title}
        </h3>
        {note && <p className="text-ink-soft text-sm">{note}</p>}
      </div>
      {children}
    </section>
  );
}

interface FoldProps {
  title: string;
  /** Summary of the content, shown while closed. */
  summary: string;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  children: ReactNode;
}

/** Collapsible group for rarely used fields. */
export function Fold({ title, summary, isOpen, onToggle, children }: FoldProps) {
  return (
    <section className="border-line border-b py-1 last:border-b-0">
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => onToggle(!isOpen)}
          className="hover:bg-hover -mx-2 flex w-[calc(100%+1rem)] items-start gap-2 rounded-md px-2 py-2.5 text-left"
        >
          <Icon name={isOpen ? "down" : "right"} size={14} className="text-ink-faint mt-1" />
          <span className="min-w-0">
            <span className="block font-semibold">{title}</span>
            {!isOpen && <span className="text-ink-soft block text-sm font-normal">{summary}</span>}
          </span>
        </button>
      </h3>
      {isOpen && <div className="flex flex-col gap-4 pt-1 pb-4">{children}</div>}
    </section>
  );
}

// --- choices -------------------------------------------------------------------------------------------

interface Choice<T extends string> {
  value: T;
  label: string;
  icon?: IconName;
  whyNot?: string | null;
}

interface ChoicesProps<T extends string> {
  legend: string;
  isLegendHidden?: boolean;
  value: T;
  choices: readonly Choice<T>[];
  onChange: (value: T) => void;
}

/** Radio buttons in a row: choose one. */
export function Choices<T extends string>({
  legend,
  isLegendHidden = false,
  value,
  choices,
  onChange,
}: ChoicesProps<T>) {
  const name = useId();
  const closed = choices.filter((choice) => choice.whyNot);
  return (
    <fieldset
      className="flex min-w-0 flex-col gap-1.5"
      aria-describedby={closed.length > 0 ? `${name}-why` : undefined}
    >
      <legend className={isLegendHidden ? "sr-only" : "mb-1 text-sm font-medium"}>{legend}</legend>
      <div className="flex flex-wrap gap-1.5">
        {choices.map((choice) => (
          <label
            key={choice.value}
            title={choice.whyNot ?? undefined}
            className="border-control bg-surface has-checked:border-accent has-checked:bg-accent-soft has-checked:text-accent has-focus-visible:outline-ring has-disabled:text-ink-faint has-disabled:border-line relative flex h-8 cursor-pointer items-center gap-1.5 rounded-md border px-2.5 text-sm font-medium has-disabled:cursor-not-allowed has-disabled:border-dashed has-focus-visible:outline-2"
          >
            <input
              type="radio"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              disabled={Boolean(choice.whyNot) && choice.value !== value}
              onChange={() => onChange(choice.value)}
              className="absolute inset-0 cursor-pointer appearance-none opacity-0 disabled:cursor-not-allowed"
            />
            {choice.icon && <Icon name={choice.icon} size={14} />}
            {choice.label}
          </label>
        ))}
      </div>
      {closed.length > 0 && (
        <p id={`${name}-why`} className="text-ink-faint text-xs">
          {closed.map((choice) => `${choice.label}: ${choice.whyNot}`).join(" ")}
        </p>
      )}
    </fieldset>
  );
}

interface SomeProps {
  legend: string;
  isLegendHidden?: boolean;
  all: readonly { value: number; label: string; name: string }[];
  chosen: readonly number[];
  onChange: (chosen: readonly number[]) => void;
  /** True: small buttons, for long lists. */
  isDense?: boolean;
}

/** Checkboxes in a row: choose any number. */
export function Some({ legend, isLegendHidden = false, all, chosen, onChange, isDense = false }: SomeProps) {
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className={isLegendHidden ? "sr-only" : "mb-1 text-sm font-medium"}>{legend}</legend>
      <div className="flex flex-wrap gap-1">
        {all.map(({ value, label, name }) => (
          <label
            key={value}
            className={`border-control bg-surface has-checked:border-accent has-checked:bg-accent has-checked:text-on-accent has-focus-visible:outline-ring numbers relative grid cursor-pointer place-items-center rounded-md border font-medium has-focus-visible:outline-2 has-focus-visible:outline-offset-1 ${
              isDense ? "h-7 w-8 text-xs" : "h-8 min-w-11 px-2 text-sm"
            }`}
          >
            <input
              type="checkbox"
              aria-label={name}
              checked={chosen.includes(value)}
              onChange={(event) =>
                onChange(
                  event.target.checked
                    ? [...chosen, value].sort((a, b) => a - b)
                    : chosen.filter((each) => each !== value),
                )
              }
              className="absolute inset-0 cursor-pointer appearance-none opacity-0"
            />
            {label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"].map(
  (name, index) => ({ value: index + 1, label: name.slice(0, 3), name }),
);

interface CheckProps {
  label: ReactNode;
  hint?: string;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
}

export function Check({ label, hint, isChecked, onChange }: CheckProps) {
  const id = useId();
  return (
    <div className="flex items-start gap-2">
      <span className="relative mt-0.5 grid size-4 shrink-0 place-items-center">
        <input
          id={id}
          type="checkbox"
          checked={isChecked}
          aria-describedby={hint ? `${id}-hint` : undefined}
          onChange={(event) => onChange(event.target.checked)}
          className="border-control bg-surface checked:border-accent checked:bg-accent size-4 cursor-pointer appearance-none rounded border"
        />
        {isChecked && <Icon name="check" size={12} className="text-on-accent pointer-events-none absolute" />}
      </span>
      <div className="min-w-0">
        <label htmlFor={id} className="cursor-pointer text-sm font-medium">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-ink-faint text-xs">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

// --- within a sentence -----------------------------------------------------------------------------------

interface SentenceProps {
  children: ReactNode;
  problems?: readonly (FieldProblem | null)[];
}

/** A sentence with controls in it. */
export function Sentence({ children, problems = [] }: SentenceProps) {
  const wrong = problems.filter((each) => each !== null);
  return (
    <div className="flex flex-col gap-1">
      <div className="flex flex-wrap items-center gap-x-1.5 gap-y-1 text-sm leading-8">{children}</div>
      {wrong.map((problem) => (
        <ProblemLine key={problem.text} problem={problem} />
      ))}
    </div>
  );
}

interface SmallProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  isWrong?: boolean;
  type?: "text" | "time";
  size?: string;
}

export function Small({ label, value, onChange, isWrong = false, type = "text", size = "w-14" }: SmallProps) {
  return (
    <input
      type={type}
      aria-label={label}
      aria-invalid={isWrong || undefined}
      inputMode={type === "text" ? "decimal" : undefined}
      autoComplete="off"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className={`${INPUT} numbers h-8 px-2 ${size}`}
    />
  );
}

interface PickProps<T extends string> {
  label: string;
  value: T;
  choices: readonly (readonly [value: T, words: string])[];
  onChange: (value: T) => void;
}

export function Pick<T extends string>({ label, value, choices, onChange }: PickProps<T>) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value as T)}
      className={`${INPUT} h-8 max-w-full px-1.5`}
    >
      {choices.map(([each, words]) => (
        <option key={each} value={each}>
          {words}
        </option>
      ))}
    </select>
  );
}

interface LengthProps {
  label: string;
  value: Length;
  onChange: (value: Length) => void;
  isWrong?: boolean;
}

export function LengthInput({ label, value, onChange, isWrong = false }: LengthProps) {
  return (
    <span className="inline-flex items-center gap-1">
      <Small
        label={label}
        value={value.amount}
        isWrong={isWrong}
        onChange={(amount) => onChange({ ...value, amount })}
      />
      <Pick<Unit>
        label={`${label}, unit`}
        value={value.unit}
        choices={UNITS.map((unit) => [unit, UNIT_WORDS[unit]] as const)}
        onChange={(unit) => onChange({ ...value, unit })}
      />
    </span>
  );
}

// --- zones and pairs -------------------------------------------------------------------------------------

interface ZoneProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  problem: FieldProblem | null;
  /** Zones offered as one-click buttons. */
  usual: readonly string[];
}

export function ZoneField({ label, value, onChange, problem, usual }: ZoneProps) {
  const id = useId();
  const others = [...new Set(usual)].filter((zone) => zone !== value);
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      <div className="flex flex-wrap items-center gap-1.5">
        <input
          id={id}
          list={`${id}-zones`}
          value={value}
          spellCheck={false}
          autoComplete="off"
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-problem` : undefined}
          onChange={(event) => onChange(event.target.value)}
          className={`${INPUT} h-9 w-56 max-w-full px-2.5`}
        />
        <datalist id={`${id}-zones`}>
          {zoneNames().map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        {others.map((zone) => (
          <Button key={zone} look="link" size="small" onClick={() => onChange(zone)}>
            {zone}
          </Button>
        ))}
      </div>
      <ProblemLine id={`${id}-problem`} problem={problem} />
    </div>
  );
}

interface PairsProps {
  legend: string;
  hint?: string;
  /** Singular name of an item, such as "label". */
  one: string;
  pairs: readonly Pair[];
  onChange: (pairs: readonly Pair[]) => void;
  problem: FieldProblem | null;
  nameHint: string;
  valueHint: string;
}

export function Pairs({ legend, hint, one, pairs, onChange, problem, nameHint, valueHint }: PairsProps) {
  function put(key: number, changes: Partial<Pair>) {
    onChange(pairs.map((pair) => (pair.key === key ? { ...pair, ...changes } : pair)));
  }
  function add() {
    const key = Math.max(-1, ...pairs.map((pair) => pair.key)) + 1;
    onChange([...pairs, { key, name: "", value: "" }]);
  }
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5">
      <legend className="mb-1 text-sm font-medium">{legend}</legend>
      {pairs.map((pair, index) => (
        <div key={pair.key} className="flex items-center gap-1.5">
          <input
            aria-label={`Name of ${one} ${index + 1}`}
            placeholder={nameHint}
            value={pair.name}
            autoComplete="off"
            spellCheck={false}
            aria-invalid={problem ? true : undefined}
            onChange={(event) => put(pair.key, { name: event.target.value })}
            className={`${INPUT} h-8 w-2/5 min-w-0 px-2`}
          />
          <input
            aria-label={`Value of ${one} ${index + 1}`}
            placeholder={valueHint}
            value={pair.value}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => put(pair.key, { value: event.target.value })}
            className={`${INPUT} h-8 min-w-0 grow px-2`}
          />
          <IconButton
            icon="close"
            label={`Remove ${one} ${index + 1}`}
            onClick={() => onChange(pairs.filter((each) => each.key !== pair.key))}
          />
        </div>
      ))}
      <div>
        <Button size="small" icon="plus" onClick={add}>
          Add a {one}
        </Button>
      </div>
      <ProblemLine problem={problem} />
      {hint && <p className="text-ink-faint text-xs">{hint}</p>}
    </fieldset>
  );
}
