import { useId } from "react";
import type { FieldProblem } from "@/api/problem";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Choices, Pick, Sentence, Small, Some, WEEKDAYS } from "./controls";
import {
  asKind,
  expressionOf,
  FIELDS,
  type FieldName,
  type Fields,
  fieldsOf,
  PATTERN_KINDS,
  type Pattern,
  type PatternKind,
  patternOf,
  textOf,
} from "./cron";

const KIND_WORDS: Record<PatternKind, string> = {
  minutes: "Every few minutes",
  hourly: "Every hour",
  daily: "Every day",
  weekly: "On weekdays",
  monthly: "Every month",
  other: "As written below",
};

interface Props {
  expression: string;
  onChange: (expression: string) => void;
  problem: FieldProblem | null;
}

/** Editor for a cron expression: as a sentence, as text, or field by field. */
export function CronBuilder({ expression, onChange, problem }: Props) {
  const pattern = patternOf(expression);
  const write = (made: Pattern) => onChange(expressionOf(made, expression));
  return (
    <div className="flex flex-col gap-4">
      <Choices
        legend="How often"
        value={pattern.kind}
        choices={PATTERN_KINDS.filter((kind) => kind !== "other" || pattern.kind === "other").map((kind) => ({
          value: kind,
          label: KIND_WORDS[kind],
        }))}
        onChange={(kind) => write(asKind(kind, expression))}
      />
      <PatternSentence pattern={pattern} onChange={write} />
      <TextField
        label="Expression"
        value={expression}
        onChange={onChange}
        spellCheck={false}
        autoComplete="off"
        className="font-mono"
        problem={problem}
        hint="Also @daily, L (last day), 15W (nearest weekday), FRI#2 (second Friday), H (a value of its own)."
      />
      <FieldsRow expression={expression} onChange={(fields) => onChange(textOf(fields))} />
    </div>
  );
}

interface PatternProps {
  pattern: Pattern;
  onChange: (pattern: Pattern) => void;
}

const STEPS = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30] as const;

function PatternSentence({ pattern, onChange }: PatternProps) {
  switch (pattern.kind) {
    case "minutes": {
      const steps = STEPS.some((step) => step === pattern.every) ? STEPS : [...STEPS, pattern.every];
      return (
        <Sentence>
          Every
          <Pick
            label="Every how many minutes"
            value={String(pattern.every)}
            choices={steps.map((step) => [String(step), String(step)] as const)}
            onChange={(every) => onChange({ ...pattern, every: Number(every) })}
          />
          {pattern.every === 1 ? "minute" : "minutes"}
        </Sentence>
      );
    }
    case "hourly":
      return (
        <Sentence>
          Every hour, at minute
          <Pick
            label="Minute"
            value={String(pattern.minute)}
            choices={Array.from({ length: 60 }, (_, minute) => [String(minute), String(minute)] as const)}
            onChange={(minute) => onChange({ ...pattern, minute: Number(minute) })}
          />
        </Sentence>
      );
    case "daily":
      return (
        <Sentence>
          Every day at <ClockInput pattern={pattern} onChange={onChange} />
        </Sentence>
      );
    case "weekly":
      return (
        <Sentence>
          On
          <Some
            legend="Days of the week"
            isLegendHidden
            all={WEEKDAYS}
            chosen={pattern.days}
            // At least one day must stay selected: an empty list would mean every day.
            onChange={(days) => days.length > 0 && onChange({ ...pattern, days })}
          />
          at <ClockInput pattern={pattern} onChange={onChange} />
        </Sentence>
      );
    case "monthly":
      return (
        <Sentence>
          Every month on
          <Pick
            label="Day of the month"
            value={String(pattern.day)}
            choices={[
              ...Array.from({ length: 31 }, (_, day) => [String(day + 1), `day ${day + 1}`] as const),
              ["L", "its last day"] as const,
            ]}
            onChange={(day) => onChange({ ...pattern, day: day === "L" ? "L" : Number(day) })}
          />
          at <ClockInput pattern={pattern} onChange={onChange} />
        </Sentence>
      );
    case "other":
      return null;
  }
}

type Timed = Extract<Pattern, { hour: number }>;

function ClockInput({ pattern, onChange }: { pattern: Timed; onChange: (pattern: Pattern) => void }) {
  const two = (value: number) => String(value).padStart(2, "0");
  return (
    <Small
      type="time"
      size="w-30"
      label="Time of day"
      value={`${two(pattern.hour)}:${two(pattern.minute)}`}
      onChange={(text) => {
        const [hour, minute] = text.split(":").map(Number);
        if (hour !== undefined && minute !== undefined) onChange({ ...pattern, hour, minute });
      }}
    />
  );
}

const FIELD_WORDS: Record<FieldName, string> = {
  second: "Second",
  minute: "Minute",
  hour: "Hour",
  day: "Day",
  month: "Month",
  weekday: "Weekday",
};

function FieldsRow({ expression, onChange }: { expression: string; onChange: (fields: Fields) => void }) {
  const id = useId();
  const fields = fieldsOf(expression);
  if (fields === null) {
    return null; // the expression field shows the problem
  }
  const shown = FIELDS.filter((name) => name !== "second" || fields.second !== "");
  return (
    <div className="flex flex-wrap items-end gap-2">
      {shown.map((name) => (
        <div key={name} className="flex w-20 grow flex-col gap-1 sm:grow-0">
          <label htmlFor={`${id}-${name}`} className="text-ink-soft text-xs">
            {FIELD_WORDS[name]}
          </label>
          <input
            id={`${id}-${name}`}
            value={fields[name]}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => onChange({ ...fields, [name]: event.target.value.trim() || "*" })}
            onFocus={(event) => event.target.select()}
            className="border-control bg-surface shadow-low h-8 w-full rounded-md border px-2 font-mono text-sm focus-visible:outline-offset-0"
          />
        </div>
      ))}
      <Button
        look="link"
        size="small"
        className="h-8"
        onClick={() => onChange({ ...fields, second: fields.second === "" ? "0" : "" })}
      >
        {fields.second === "" ? "With seconds" : "Without seconds"}
      </Button>
    </div>
  );
}
