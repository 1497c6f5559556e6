// The built-in kinds of triggers: form, description and code of each. Order: that of the form.

import type { components } from "@/api/schema";
import { pythonText } from "@/screens/schedule/code/python-value";
import { CronBuilder } from "@/screens/schedule-form/CronBuilder";
import { LengthInput, Pick, Sentence, Small } from "@/screens/schedule-form/controls";
import { type Length, lengthOf } from "@/screens/schedule-form/duration";
import { useForm } from "@/screens/schedule-form/form";
import { wallTime } from "@/screens/schedule-form/wall";
import { TextField } from "@/ui/Field";
import type { Options, TriggerKind } from "./kind";

type Schemas = components["schemas"];

const cron: TriggerKind<Schemas["CronTrigger"], { expression: string }> = {
  label: "Cron",
  valuesOf: (known) => ({ expression: known?.expression ?? "0 9 * * MON-FRI" }),
  read: ({ expression }, reader, { zone }) => ({
    expression: reader.needed("/trigger/expression", expression, "Write an expression."),
    timezone: reader.zone("/trigger/timezone", zone),
  }),
  shown: () => ["expression", "timezone"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <CronBuilder
        expression={values.expression}
        onChange={(expression) => change({ expression })}
        problem={problem("/trigger/expression")}
      />
    );
  },
  zoneLabel: () => "Time zone",
  expression: (known) => known.expression,
  isHashed: (known) => /h/i.test(known.expression),
  hasWallTimes: true,
  python: (known) => ({ code: `cron(${pythonText(known.expression)}${pythonZone(known)})`, names: ["cron"] }),
  options: (known) => [["--cron", known.expression], ...zoneOption(known)],
};

type Interval = Schemas["IntervalTrigger"];
type FrequencyUnit = Interval["frequency_unit"];

const UNITS: readonly (readonly [FrequencyUnit, words: string, option: string])[] = [
  ["SECONDS", "seconds", "s"],
  ["MINUTES", "minutes", "m"],
  ["HOURS", "hours", "h"],
  ["DAYS", "days", "d"],
  ["WEEKS", "weeks", "w"],
  ["MONTHS", "months", "mo"],
];

function isElapsed(unit: FrequencyUnit): boolean {
  return ["SECONDS", "MINUTES", "HOURS"].includes(unit);
}

const interval: TriggerKind<Interval, { amount: string; unit: FrequencyUnit }> = {
  label: "Interval",
  valuesOf: (known) => ({
    amount: String(known?.frequency_time ?? 15),
    unit: known?.frequency_unit ?? "MINUTES",
  }),
  read: ({ amount, unit }, reader, { zone }) => ({
    frequency_unit: unit,
    frequency_time: reader.whole("/trigger/frequency_time", amount),
    timezone: reader.zone("/trigger/timezone", zone),
  }),
  shown: () => ["frequency_time", "timezone"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <>
        <Sentence problems={[problem("/trigger/frequency_time")]}>
          Every
          <Small
            label="How many"
            value={values.amount}
            isWrong={problem("/trigger/frequency_time") !== null}
            onChange={(amount) => change({ amount })}
          />
          <Pick
            label="Unit"
            value={values.unit}
            choices={UNITS.map(([unit, words]) => [unit, words] as const)}
            onChange={(unit) => change({ unit })}
          />
        </Sentence>
        <p className="text-ink-faint -mt-2 text-xs">
          Counted from its start, or from now if it has none. Seconds, minutes and hours are elapsed time;
          days and longer are steps of the calendar.
        </p>
      </>
    );
  },
  zoneLabel: ({ unit }) => (isElapsed(unit) ? null : "Time zone"),
  expression: () => "interval",
  isElapsed: (known) => isElapsed(known.frequency_unit),
  python: (known) => ({
    code: `every(${known.frequency_unit.toLowerCase()}=${known.frequency_time}${pythonZone(known)})`,
    names: ["every"],
  }),
  options: (known) => {
    const unit = UNITS.find(([each]) => each === known.frequency_unit)?.[2] ?? "";
    return [["--every", `${known.frequency_time}${unit}`], ...zoneOption(known)];
  },
};

const once: TriggerKind<Schemas["OnceTrigger"], { at: string }> = {
  label: "Once",
  valuesOf: (known, zone) => ({ at: known === null ? "" : wallTime(known.at, zone) }),
  read: ({ at }, reader, { zone, before }) => {
    const known = before?.kind === "once" ? String(before.at) : null;
    const text = reader.needed("/trigger/at", at, "Say when.");
    return { at: reader.instant("/trigger/at", text, zone, known) ?? "" };
  },
  shown: () => ["at"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <TextField
        label="At"
        type="datetime-local"
        step={1}
        value={values.at}
        onChange={(at) => change({ at })}
        problem={problem("/trigger/at")}
        className="sm:w-64"
      />
    );
  },
  zoneLabel: () => "Time zone of this time",
  expression: () => "once",
  python: (known) => ({ code: `once(datetime.fromisoformat(${pythonText(known.at)}))`, names: ["once"] }),
  options: (known) => [["--once", known.at]],
};

const RULES: readonly (readonly [rule: string, words: string])[] = [
  ["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Last Friday of the month"],
  ["FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Every other Monday"],
  ["FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17;BYMINUTE=0;BYSECOND=0", "Last working day"],
  ["FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "First day of the quarter"],
];

const rrule: TriggerKind<Schemas["RRuleTrigger"], { rule: string }> = {
  label: "Recurrence rule",
  valuesOf: (known) => ({ rule: known?.rule ?? "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0" }),
  read: ({ rule }, reader, { zone }) => ({
    rule: reader.needed("/trigger/rule", rule, "Write a rule."),
    timezone: reader.zone("/trigger/timezone", zone),
  }),
  shown: () => ["rule", "timezone"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <div className="flex flex-col gap-2">
        <TextField
          label="Rule"
          value={values.rule}
          onChange={(rule) => change({ rule })}
          spellCheck={false}
          autoComplete="off"
          className="font-mono"
          problem={problem("/trigger/rule")}
          hint="RFC 5545, without DTSTART: that is the schedule's start."
        />
        <Pick
          label="Examples of rules"
          value=""
          choices={[["", "Begin with an example…"], ...RULES]}
          onChange={(rule) => rule !== "" && change({ rule })}
        />
      </div>
    );
  },
  zoneLabel: () => "Time zone",
  expression: (known) => known.rule,
  hasWallTimes: true,
  python: (known) => ({ code: `rrule(${pythonText(known.rule)}${pythonZone(known)})`, names: ["rrule"] }),
  options: (known) => [["--rrule", known.rule], ...zoneOption(known)],
};

const delay: TriggerKind<Schemas["DelayTrigger"], { delay: Length }> = {
  label: "After each run",
  valuesOf: (known) => ({ delay: lengthOf(known?.seconds ?? 30) }),
  read: (values, reader) => ({ seconds: reader.length("/trigger/seconds", values.delay) }),
  shown: () => ["seconds"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <Sentence problems={[problem("/trigger/seconds")]}>
        <LengthInput
          label="How long after"
          value={values.delay}
          isWrong={problem("/trigger/seconds") !== null}
          onChange={(chosen) => change({ delay: chosen })}
        />
        after the last run has ended
      </Sentence>
    );
  },
  zoneLabel: () => null,
  expression: () => "delay",
  whyNoNext: "The next is set when the present run ends.",
  python: (known) => ({ code: `delay(${known.seconds})`, names: ["delay"] }),
  options: (known) => [["--delay", `${known.seconds}s`]],
};

function pythonZone({ timezone }: { timezone: string }): string {
  return timezone === "UTC" ? "" : `, tz=${pythonText(timezone)}`;
}

function zoneOption({ timezone }: { timezone: string }): Options {
  return timezone === "UTC" ? [] : [["--tz", timezone]];
}

export const TRIGGERS: ReadonlyMap<string, TriggerKind> = new Map(
  Object.entries<TriggerKind>({ cron, interval, once, rrule, delay }),
);
