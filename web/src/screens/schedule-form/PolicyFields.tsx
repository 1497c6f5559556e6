import { useQuery } from "@tanstack/react-query";
import { calendarNames } from "@/api/schedule-editing";
import { myZone } from "@/settings/zone";
import { TextField } from "@/ui/Field";
import {
  Check,
  LengthInput,
  Pick,
  ProblemLine,
  Sentence,
  Small,
  Some,
  WEEKDAYS,
  ZoneField,
} from "./controls";
import { ALL_HOURS } from "./draft";
import { useForm } from "./form";

/** Form fields for the policies, as sentences: timeout, retries, overlap, misfire and so on. */
export function PolicyFields() {
  const { draft, change, problem } = useForm();
  return (
    <>
      <Sentence problems={[problem("/timeout_seconds")]}>
        An attempt may take at most
        <LengthInput
          label="How long an attempt may take"
          value={draft.timeout}
          isWrong={problem("/timeout_seconds") !== null}
          onChange={(timeout) => change({ timeout })}
        />
      </Sentence>
      <MisfireSentence />
      <MissedSentence />
      <OverlapSentence />
      <RetrySentence />
      <Sentence>
        If a worker is lost in the middle of a run,
        <Pick
          label="When a worker is lost"
          value={draft.delivery}
          choices={[
            ["at_least_once", "run it again (at least once)"],
            ["at_most_once", "do not run it again (at most once)"],
          ]}
          onChange={(delivery) => change({ delivery })}
        />
      </Sentence>
      <Sentence>
        If clocks leave its time out,
        <Pick
          label="When clocks leave its time out"
          value={draft.gap}
          choices={[
            ["shift", "run right after the gap"],
            ["skip", "skip it that day"],
          ]}
          onChange={(gap) => change({ gap })}
        />
      </Sentence>
      <Sentence>
        If clocks show its time twice, run
        <Pick
          label="When clocks show its time twice"
          value={draft.repeat}
          choices={[
            ["first", "the first time"],
            ["second", "the second time"],
            ["both", "both times"],
          ]}
          onChange={(repeat) => change({ repeat })}
        />
      </Sentence>
      <Sentence problems={[problem("/jitter_seconds")]}>
        Spread its starts over
        <LengthInput
          label="How far starts are spread"
          value={draft.jitter}
          isWrong={problem("/jitter_seconds") !== null}
          onChange={(jitter) => change({ jitter })}
        />
        after each time
      </Sentence>
    </>
  );
}

function MisfireSentence() {
  const { draft, change, problem } = useForm();
  return (
    <Sentence problems={[problem("/misfire/grace_seconds")]}>
      If it is late by more than
      {draft.misfire === "skip" ? (
        <span className="font-medium">10 seconds</span>
      ) : (
        <LengthInput
          label="How late it may be"
          value={draft.grace}
          isWrong={problem("/misfire/grace_seconds") !== null}
          onChange={(grace) => change({ grace })}
        />
      )}
      it does not run.
    </Sentence>
  );
}

function MissedSentence() {
  const { draft, change, problem } = useForm();
  return (
    <Sentence problems={[problem("/misfire/max_catchup")]}>
      If several times were missed,
      <Pick
        label="When several times were missed"
        value={draft.misfire}
        choices={[
          ["fire_once", "run once for all of them"],
          ["fire_all", "run each of them"],
          ["skip", "skip all of them"],
        ]}
        onChange={(misfire) => change({ misfire })}
      />
      {draft.misfire === "fire_all" && (
        <>
          at most the latest
          <Small
            label="How many missed times are run"
            value={draft.maxCatchup}
            isWrong={problem("/misfire/max_catchup") !== null}
            onChange={(maxCatchup) => change({ maxCatchup })}
          />
        </>
      )}
    </Sentence>
  );
}

function OverlapSentence() {
  const { draft, change, problem } = useForm();
  const isOpen = draft.overlap === "allow";
  return (
    <Sentence problems={[problem("/overlap/max_instances")]}>
      {isOpen ? (
        "If it is due while it still runs,"
      ) : (
        <>
          If it is due while
          <Small
            label="How many runs may go on"
            value={draft.maxInstances}
            isWrong={problem("/overlap/max_instances") !== null}
            onChange={(maxInstances) => change({ maxInstances })}
          />
          {draft.maxInstances.trim() === "1" ? "run still goes on," : "runs still go on,"}
        </>
      )}
      <Pick
        label="When it is due while it still runs"
        value={draft.overlap}
        choices={[
          ["skip", "skip this time"],
          ["queue", "let it wait for its turn"],
          ["cancel_running", "cancel what runs"],
          ["allow", "run it beside"],
        ]}
        onChange={(overlap) => change({ overlap })}
      />
    </Sentence>
  );
}

function RetrySentence() {
  const { draft, change, problem } = useForm();
  const triesAgain = draft.attempts.trim() !== "1";
  return (
    <div className="flex flex-col gap-1.5">
      <Sentence
        problems={[
          problem("/retry/max_attempts"),
          problem("/retry/initial_delay_seconds"),
          problem("/retry/multiplier"),
          problem("/retry/max_delay_seconds"),
          problem("/retry"),
        ]}
      >
        If it fails, make at most
        <Small
          label="How many attempts"
          value={draft.attempts}
          isWrong={problem("/retry/max_attempts") !== null}
          onChange={(attempts) => change({ attempts })}
        />
        {triesAgain ? (
          <>
            attempts: the second after
            <LengthInput
              label="How long to wait before the second attempt"
              value={draft.firstDelay}
              isWrong={problem("/retry/initial_delay_seconds") !== null}
              onChange={(firstDelay) => change({ firstDelay })}
            />
            and each further one after
            <Small
              label="How many times longer to wait each time"
              value={draft.multiplier}
              isWrong={problem("/retry/multiplier") !== null}
              onChange={(multiplier) => change({ multiplier })}
            />
            times as long, but at most
            <LengthInput
              label="How long to wait at most"
              value={draft.mostDelay}
              isWrong={problem("/retry/max_delay_seconds") !== null}
              onChange={(mostDelay) => change({ mostDelay })}
            />
          </>
        ) : (
          "attempt"
        )}
      </Sentence>
      {triesAgain && (
        <Check
          label="Vary these waits a little, so that many failures do not come back at once"
          isChecked={draft.hasRetryJitter}
          onChange={(hasRetryJitter) => change({ hasRetryJitter })}
        />
      )}
    </div>
  );
}

const HOURS = ALL_HOURS.map((hour) => ({
  value: hour,
  label: String(hour),
  name: `${hour}:00 to ${hour + 1}:00`,
}));

/** Form fields for the limits: start, end, number of runs, days and hours, and calendars. */
export function LimitFields() {
  const { draft, change, problem } = useForm();
  const { zone } = draft.trigger;
  return (
    <>
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label="Not before"
          type="datetime-local"
          step={1}
          value={draft.start}
          onChange={(start) => change({ start })}
          problem={problem("/start_ts")}
          hint={`In ${zone}. Intervals and rules count from it.`}
        />
        <TextField
          label="Not after"
          type="datetime-local"
          step={1}
          value={draft.end}
          onChange={(end) => change({ end })}
          problem={problem("/end_ts")}
          hint={`In ${zone}.`}
        />
      </div>
      <TextField
        label="At most so many runs"
        inputMode="numeric"
        value={draft.maxRuns}
        onChange={(maxRuns) => change({ maxRuns })}
        problem={problem("/max_runs")}
        placeholder="no limit"
        className="sm:w-40"
      />
      <Check
        label="Only on some days or in some hours"
        hint="Times outside are skipped, and the ledger says so."
        isChecked={draft.hasWindow}
        onChange={(hasWindow) => change({ hasWindow, windowZone: hasWindow ? zone : draft.windowZone })}
      />
      {draft.hasWindow && (
        <div className="border-line flex flex-col gap-3 rounded-lg border p-3">
          <Some legend="Days" all={WEEKDAYS} chosen={draft.days} onChange={(days) => change({ days })} />
          <ProblemLine problem={problem("/window/days_of_week")} />
          <Some
            legend="Hours"
            isDense
            all={HOURS}
            chosen={draft.hours}
            onChange={(hours) => change({ hours })}
          />
          <ProblemLine problem={problem("/window/hours_of_day") ?? problem("/window")} />
          <ZoneField
            label="Time zone of these hours"
            value={draft.windowZone}
            onChange={(windowZone) => change({ windowZone })}
            problem={problem("/window/timezone")}
            usual={[zone, myZone(), "UTC"]}
          />
        </div>
      )}
      <CalendarChoice />
    </>
  );
}

function CalendarChoice() {
  const { draft, change, problem } = useForm();
  const known = useQuery(calendarNames).data ?? [];
  const names = [...new Set([...known, ...draft.calendars])];
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 text-sm font-medium">Not on the days of these calendars</legend>
      {names.length === 0 ? (
        <p className="text-ink-faint text-xs">There is no calendar yet.</p>
      ) : (
        <div className="flex flex-wrap gap-x-5 gap-y-2">
          {names.map((name) => (
            <Check
              key={name}
              label={name}
              isChecked={draft.calendars.includes(name)}
              onChange={(isChecked) =>
                change({
                  calendars: isChecked
                    ? [...draft.calendars, name]
                    : draft.calendars.filter((each) => each !== name),
                })
              }
            />
          ))}
        </div>
      )}
      <ProblemLine problem={problem("/calendars")} />
    </fieldset>
  );
}
