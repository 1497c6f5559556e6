import { useQuery } from "@tanstack/react-query";
import { kinds, type PreviewAsked } from "@/api/schedule-editing";
import { myZone } from "@/settings/zone";
import { TextField } from "@/ui/Field";
import { CronBuilder } from "./CronBuilder";
import { Choices, Group, LengthInput, Pick, Sentence, Small, ZoneField } from "./controls";
import type { FrequencyUnit, TriggerKind } from "./draft";
import { useForm } from "./form";
import { PreviewBox } from "./PreviewBox";

const KINDS: readonly { value: TriggerKind; label: string }[] = [
  { value: "cron", label: "Cron" },
  { value: "interval", label: "Interval" },
  { value: "once", label: "Once" },
  { value: "rrule", label: "Recurrence rule" },
  { value: "delay", label: "After each run" },
];

const UNITS: readonly (readonly [FrequencyUnit, string])[] = [
  ["SECONDS", "seconds"],
  ["MINUTES", "minutes"],
  ["HOURS", "hours"],
  ["DAYS", "days"],
  ["WEEKS", "weeks"],
  ["MONTHS", "months"],
];

const RULES: readonly (readonly [rule: string, words: string])[] = [
  ["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Last Friday of the month"],
  ["FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Every other Monday"],
  ["FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17;BYMINUTE=0;BYSECOND=0", "Last working day"],
  ["FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "First day of the quarter"],
];

/** Form fields for the trigger, with a preview of the fire times. */
export function WhenFields({ asked }: { asked: PreviewAsked | null }) {
  const { draft, changeTrigger, problem } = useForm();
  const { kind, zone } = draft.trigger;
  const known = useQuery(kinds).data?.items ?? [];
  const isElapsed = kind === "interval" && ["SECONDS", "MINUTES", "HOURS"].includes(draft.trigger.unit);
  const knowsZone = kind !== "once" && kind !== "delay";
  return (
    <Group title="When">
      <Choices
        legend="Kind of trigger"
        isLegendHidden
        value={kind}
        choices={KINDS.map((choice) => {
          const told = known.find((each) => each.family === "trigger" && each.name === choice.value);
          return { ...choice, whyNot: told && !told.is_available ? "This server can't carry it out." : null };
        })}
        onChange={(chosen) => changeTrigger({ kind: chosen })}
      />
      <KindFields kind={kind} />
      {kind !== "delay" && !isElapsed && (
        <ZoneField
          label={kind === "once" ? "Time zone of this time" : "Time zone"}
          value={zone}
          onChange={(chosen) => changeTrigger({ zone: chosen })}
          problem={problem("/trigger/timezone")}
          usual={[myZone(), "UTC"]}
        />
      )}
      <PreviewBox asked={asked} zone={knowsZone && !isElapsed ? zone : null} />
    </Group>
  );
}

function KindFields({ kind }: { kind: TriggerKind }) {
  const { draft, changeTrigger, problem } = useForm();
  const { trigger } = draft;
  switch (kind) {
    case "cron":
      return <CronBuilder />;
    case "interval":
      return (
        <>
          <Sentence problems={[problem("/trigger/frequency_time")]}>
            Every
            <Small
              label="How many"
              value={trigger.amount}
              isWrong={problem("/trigger/frequency_time") !== null}
              onChange={(amount) => changeTrigger({ amount })}
            />
            <Pick
              label="Unit"
              value={trigger.unit}
              choices={UNITS}
              onChange={(unit) => changeTrigger({ unit })}
            />
          </Sentence>
          <p className="text-ink-faint -mt-2 text-xs">
            Counted from its start, or from now if it has none. Seconds, minutes and hours are elapsed time;
            days and longer are steps of the calendar.
          </p>
        </>
      );
    case "once":
      return (
        <TextField
          label="At"
          type="datetime-local"
          step={1}
          value={trigger.at}
          onChange={(at) => changeTrigger({ at })}
          problem={problem("/trigger/at")}
          className="sm:w-64"
        />
      );
    case "rrule":
      return (
        <div className="flex flex-col gap-2">
          <TextField
            label="Rule"
            value={trigger.rule}
            onChange={(rule) => changeTrigger({ rule })}
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
            onChange={(rule) => rule !== "" && changeTrigger({ rule })}
          />
        </div>
      );
    case "delay":
      return (
        <Sentence problems={[problem("/trigger/seconds")]}>
          <LengthInput
            label="How long after"
            value={trigger.delay}
            isWrong={problem("/trigger/seconds") !== null}
            onChange={(delay) => changeTrigger({ delay })}
          />
          after the last run has ended
        </Sentence>
      );
  }
}
