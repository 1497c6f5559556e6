import type { Condition } from "@/api/notifications";
import type { FieldProblem } from "@/api/problem";
import { Choices, Group, Pairs, ProblemLine } from "@/screens/schedule-form/controls";
import { TextField } from "@/ui/Field";
import { ConditionFields } from "./ConditionFields";
import type { RuleDraft } from "./rule-draft";
import { DESTINATION_WORDS, referenceTo } from "./rule-words";
import { ScheduleField } from "./ScheduleField";
import { SecretField } from "./SecretField";

export interface FieldsProps {
  draft: RuleDraft;
  change: (changes: Partial<RuleDraft>) => void;
  /** Conditions as they are sent. The server reports problems by their index in this list. */
  on: readonly Condition[];
  problem: (pointer: string) => FieldProblem | null;
}

export function RuleFields({ isFixed, ...form }: FieldsProps & { isFixed: boolean }) {
  const { draft, change, problem } = form;
  return (
    <fieldset disabled={isFixed} className="min-w-0 pb-4">
      <Group title="The rule">
        <TextField
          label="Name"
          value={draft.name}
          onChange={(name) => change({ name })}
          maxLength={126}
          autoComplete="off"
          placeholder="on-call"
          problem={problem("/name")}
        />
        <TextField
          label="Description"
          value={draft.description}
          onChange={(description) => change({ description })}
          maxLength={2000}
          autoComplete="off"
          hint="Optional. Whom it is for, and what they are to do."
          problem={problem("/description")}
        />
      </Group>
      <Group title="About which schedules" note="Left empty: all of them, also those that are yet to come.">
        <ScheduleField
          chosen={draft.schedules}
          onChange={(schedules) => change({ schedules })}
          problem={problem("/match/schedules")}
          isFixed={isFixed}
        />
        <Pairs
          legend="Labels"
          hint="Only schedules that have all of these."
          one="label"
          nameHint="team"
          valueHint="payments"
          pairs={draft.labels}
          onChange={(labels) => change({ labels })}
          problem={problem("/match/labels")}
        />
        <ProblemLine problem={problem("/match")} />
      </Group>
      <Group title="When one of them">
        <ConditionFields {...form} />
      </Group>
      <Group title="Tell">
        <Destination {...form} />
      </Group>
    </fieldset>
  );
}

function Destination({ draft, change, problem }: FieldsProps) {
  return (
    <>
      <Choices<RuleDraft["kind"]>
        legend="Kind of destination"
        isLegendHidden
        value={draft.kind}
        choices={[
          { value: "webhook", label: DESTINATION_WORDS.webhook, icon: "http" },
          { value: "slack", label: DESTINATION_WORDS.slack, icon: "bell" },
        ]}
        onChange={(kind) => change({ kind })}
      />
      <TextField
        label="URL"
        type="url"
        inputMode="url"
        value={draft.url}
        onChange={(url) => change({ url })}
        maxLength={4000}
        autoComplete="off"
        spellCheck={false}
        placeholder={
          draft.kind === "webhook" ? "https://hooks.example/foliot" : "https://hooks.slack.com/services/…"
        }
        hint={`${
          draft.kind === "webhook"
            ? "Gets a POST with JSON, signed as Standard Webhooks says."
            : "An incoming webhook of Slack, or of what understands the same."
        } ${referenceTo("name")} may stand behind the host.`}
        problem={problem("/to/url")}
      />
      {draft.kind === "webhook" && (
        <SecretField
          value={draft.secret}
          onChange={(secret) => change({ secret })}
          problem={problem("/to/secret")}
        />
      )}
      <ProblemLine problem={problem("/to")} />
    </>
  );
}
