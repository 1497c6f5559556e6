import { useState } from "react";
import type { PreviewAsked } from "@/api/schedule-editing";
import { TextArea, TextField } from "@/ui/Field";
import { Check, Choices, Fold, Pairs } from "./controls";
import { secondsOf } from "./duration";
import { useForm } from "./form";
import { LimitFields, PolicyFields } from "./PolicyFields";
import { lengthWords, overlapWords, windowWords } from "./sentences";
import { TargetFields } from "./TargetFields";
import { WhenFields } from "./WhenFields";

const OF_LIMITS = ["/start_ts", "/end_ts", "/max_runs", "/window", "/calendars"];
const OF_POLICIES = ["/timeout_seconds", "/misfire", "/overlap", "/retry", "/jitter_seconds"];
const OF_PLACE = ["/queue", "/labels", "/priority"];

interface Props {
  asked: PreviewAsked | null;
  /** JSON pointers of fields with problems. */
  wrong: readonly string[];
}

/** All fields of a schedule's definition. Rarely used groups are collapsed. */
export function ScheduleForm({ asked, wrong }: Props) {
  const { draft, change, problem } = useForm();
  return (
    <>
      <div className="border-line flex flex-col gap-4 border-b pt-1 pb-5">
        <TextField
          label="Name"
          value={draft.name}
          onChange={(name) => change({ name })}
          maxLength={126}
          autoComplete="off"
          problem={problem("/name")}
        />
        <TextArea
          label="Description"
          rows={2}
          value={draft.description}
          onChange={(description) => change({ description })}
          maxLength={2000}
          problem={problem("/description")}
        />
      </div>
      <WhenFields asked={asked} />
      <TargetFields />
      <FoldOf title="Limits" summary={limitsSummary(draft)} pointers={OF_LIMITS} wrong={wrong}>
        <LimitFields />
      </FoldOf>
      <FoldOf
        title="If something goes wrong"
        summary={policySummary(draft)}
        pointers={OF_POLICIES}
        wrong={wrong}
      >
        <PolicyFields />
      </FoldOf>
      <FoldOf title="Queue, priority, labels" summary={placeSummary(draft)} pointers={OF_PLACE} wrong={wrong}>
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            label="Queue"
            value={draft.queue}
            onChange={(queue) => change({ queue })}
            spellCheck={false}
            autoComplete="off"
            problem={problem("/queue")}
          />
          <Choices
            legend="Priority"
            value={draft.priority}
            choices={[
              { value: "high", label: "High" },
              { value: "medium", label: "Medium" },
              { value: "low", label: "Low" },
            ]}
            onChange={(priority) => change({ priority })}
          />
        </div>
        <Pairs
          legend="Labels"
          one="label"
          nameHint="team"
          valueHint="pay"
          pairs={draft.labels}
          onChange={(labels) => change({ labels })}
          problem={problem("/labels")}
        />
        <Check
          label="Active"
          hint="An inactive schedule is defined and has no times. To stop one for a while, pause it."
          isChecked={draft.active}
          onChange={(active) => change({ active })}
        />
      </FoldOf>
    </>
  );
}

interface FoldOfProps {
  title: string;
  summary: string;
  pointers: readonly string[];
  wrong: readonly string[];
  children: React.ReactNode;
}

/** A collapsible group. Closed at first; open while a field in it has a problem. */
function FoldOf({ title, summary, pointers, wrong, children }: FoldOfProps) {
  const [isOpen, setOpen] = useState(false);
  const isWrong = wrong.some((pointer) =>
    pointers.some((each) => pointer === each || pointer.startsWith(`${each}/`)),
  );
  return (
    <Fold title={title} summary={summary} isOpen={isOpen || isWrong} onToggle={setOpen}>
      {children}
    </Fold>
  );
}

type Draft = ReturnType<typeof useForm>["draft"];

function limitsSummary(draft: Draft): string {
  const parts = [
    draft.start && `Not before ${draft.start.replace("T", " ")}`,
    draft.end && `not after ${draft.end.replace("T", " ")}`,
    draft.maxRuns.trim() && `at most ${draft.maxRuns.trim()} runs`,
    draft.hasWindow &&
      windowWords({
        days_of_week: [...draft.days],
        hours_of_day: [...draft.hours],
        timezone: draft.windowZone,
      }).replace(/\.$/, ""),
    draft.calendars.length > 0 && `not on the days of ${draft.calendars.join(", ")}`,
  ].filter(Boolean);
  return parts.length === 0 ? "No start, no end, at any time." : `${parts.join("; ")}.`;
}

function policySummary(draft: Draft): string {
  const timeout = secondsOf(draft.timeout);
  const attempts = draft.attempts.trim();
  return [
    timeout === null ? "" : `At most ${lengthWords(timeout)} for an attempt,`,
    attempts === "1" ? "one attempt." : `${attempts} attempts.`,
    overlapWords({ policy: draft.overlap, max_instances: Number(draft.maxInstances) || 1 }),
  ].join(" ");
}

function placeSummary(draft: Draft): string {
  const labels = draft.labels
    .filter((pair) => pair.name.trim() !== "")
    .map((pair) => `${pair.name}=${pair.value}`);
  const active = draft.active ? "" : " Inactive.";
  return `Queue ${draft.queue}, ${draft.priority} priority${labels.length > 0 ? `, ${labels.join(", ")}` : ""}.${active}`;
}
