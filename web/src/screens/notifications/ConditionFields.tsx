import type { ReactNode } from "react";
import { Check, LengthInput, Pick, ProblemLine, Sentence, Small } from "@/screens/schedule-form/controls";
import type { FieldsProps } from "./RuleFields";
import type { ConditionKind } from "./rule-words";

/** Conditions of a rule. Each can be switched on and has its own settings. */
export function ConditionFields({ draft, change, on, problem }: FieldsProps) {
  function wrongWith(kind: ConditionKind) {
    const index = on.findIndex((condition) => condition.kind === kind);
    return index === -1 ? null : problem(`/on/${index}`);
  }
  function toggle(kind: ConditionKind) {
    return {
      isChecked: draft.on.has(kind),
      onChange: (isOn: boolean) => {
        const made = new Set(draft.on);
        if (isOn) made.add(kind);
        else made.delete(kind);
        change({ on: made });
      },
    };
  }
  const silence = wrongWith("did_not_run");
  const inARow = wrongWith("failures_in_a_row");
  return (
    <div className="flex flex-col gap-3">
      <div>
        <Check
          label="Fails"
          hint="An execution has failed for good, after all its attempts: told once, until it succeeds again."
          {...toggle("failure")}
        />
        {draft.on.has("failure") && (
          <Beneath>
            <Check
              label="Every failure, not only the first"
              isChecked={draft.every}
              onChange={(every) => change({ every })}
            />
          </Beneath>
        )}
      </div>
      <div>
        <Check label="Fails several times in a row" {...toggle("failures_in_a_row")} />
        {draft.on.has("failures_in_a_row") && (
          <Beneath>
            <Sentence problems={[inARow]}>
              <Small
                label="How many failures in a row"
                value={draft.count}
                isWrong={inARow !== null}
                onChange={(count) => change({ count })}
              />
              times
            </Sentence>
          </Beneath>
        )}
      </div>
      <div>
        <Check
          label="Has no success for too long"
          hint="Also if it never runs at all. Not while it is paused."
          {...toggle("did_not_run")}
        />
        {draft.on.has("did_not_run") && (
          <Beneath>
            <Sentence problems={[silence]}>
              <LengthInput
                label="How long without success"
                value={draft.silence === "within" ? draft.within : draft.grace}
                isWrong={silence !== null}
                onChange={(length) =>
                  change(draft.silence === "within" ? { within: length } : { grace: length })
                }
              />
              <Pick<typeof draft.silence>
                label="Counted from"
                value={draft.silence}
                choices={[
                  ["within", "since its last success"],
                  ["grace", "after a due time"],
                ]}
                onChange={(counted) => change({ silence: counted })}
              />
            </Sentence>
          </Beneath>
        )}
      </div>
      <Check
        label="Starts too late"
        hint="It waits longer than its priority promises."
        {...toggle("sla_miss")}
      />
      <Check
        label="Recovers"
        hint="The first success after what this rule told of; in a rule of its own, after any failure."
        {...toggle("recovery")}
      />
      {(["failure", "sla_miss", "recovery"] as const).map((kind) => (
        <ProblemLine key={kind} problem={wrongWith(kind)} />
      ))}
      <ProblemLine problem={problem("/on")} />
    </div>
  );
}

function Beneath({ children }: { children: ReactNode }) {
  return <div className="mt-1.5 ml-6">{children}</div>;
}
