// Create and edit a schedule: the form, the review of changes, and conflicts with other editors.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { ProblemError } from "@/api/problem";
import {
  type Definition,
  previewOf,
  type TaskFunction,
  taskFunction,
  useCreate,
  useReplace,
} from "@/api/schedule-editing";
import { schedule as scheduleQuery } from "@/api/schedules";
import { useWhyNot } from "@/api/session";
import type { Schedule } from "@/api/types";
import { useKinds } from "@/kinds";
import { taskIn } from "@/kinds/targets";
import { myZone } from "@/settings/zone";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Sheet } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { Conflict } from "./Conflict";
import { Differences } from "./Differences";
import { definitionOf } from "./definition";
import { differencesOf, isSame, rebased } from "./difference";
import { blankDraft, type Draft, draftOf, readDraft, shownPointers } from "./draft";
import { followTask } from "./following";
import { FormProvider } from "./form";
import { problemsOf } from "./problems";
import { ScheduleForm } from "./ScheduleForm";
import { fieldsOf } from "./schema-fields";
import { usePreviewAsked } from "./usePreviewAsked";

interface Props {
  onClose: () => void;
  onSaved: (saved: Schedule, isNew: boolean) => void;
}

/** Editor for a new schedule. `likeId`: id of a schedule to copy. Empty: none. */
export function NewSchedule({ likeId, ...props }: Props & { likeId: string }) {
  const like = useQuery({ ...scheduleQuery(likeId), enabled: likeId !== "" });
  if (likeId === "") {
    return <Editor base={null} initial={blankDraft(myZone())} {...props} />;
  }
  if (like.data) {
    const copy = { ...definitionOf(like.data), name: `${like.data.name}-copy` };
    return <Editor base={null} initial={draftOf(copy, myZone())} {...props} />;
  }
  return <Waiting title="New schedule" query={like} onClose={props.onClose} />;
}

export function EditSchedule({ id, ...props }: Props & { id: string }) {
  const known = useQuery(scheduleQuery(id));
  if (known.data) {
    return <Editor base={known.data} initial={draftOf(definitionOf(known.data), myZone())} {...props} />;
  }
  return <Waiting title="Edit" query={known} onClose={props.onClose} />;
}

interface WaitingProps {
  title: string;
  query: { error: unknown; refetch: () => unknown };
  onClose: () => void;
}

function Waiting({ title, query, onClose }: WaitingProps) {
  return (
    <Sheet title={title} onClose={onClose}>
      {query.error ? (
        <ErrorState error={query.error} onRetry={() => query.refetch()} />
      ) : (
        <Skeleton className="h-96" />
      )}
    </Sheet>
  );
}

type Step = { name: "form" } | { name: "review" } | { name: "conflict"; theirs: Schedule };

interface EditorProps extends Props {
  base: Schedule | null;
  initial: Draft;
}

function Editor({ base: opened, initial, onClose, onSaved }: EditorProps) {
  const client = useQueryClient();
  const mayNotEdit = useWhyNot("editor");
  // Compare changes with the version that was opened, even if newer ones arrive meanwhile.
  const [base, setBase] = useState(opened);
  const [begun, setBegun] = useState(initial);
  const [draft, setDraft] = useState(initial);
  const [step, setStep] = useState<Step>({ name: "form" });
  const [isTried, setTried] = useState(false);
  const [reason, setReason] = useState("");
  const [isLeaving, setLeaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const create = useCreate();
  const replace = useReplace();
  const isBusy = create.isPending || replace.isPending;

  const kinds = useKinds();
  const taskName = taskIn(draft.target);
  const task = useQuery(taskFunction(taskName));
  const known = task.data?.name === taskName ? task.data : null;
  const followed = useRef<TaskFunction | null>(null);
  useEffect(() => {
    // A copied schedule keeps its settings until another task is chosen.
    if (opened !== null || known === null || known.name === taskIn(initial.target)) return;
    const before = followed.current;
    followed.current = known;
    if (before?.name !== known.name) setDraft((present) => followTask(present, before, known));
  }, [opened, known, initial]);
  const fields = useMemo(() => (known === null ? null : fieldsOf(known.args_schema)), [known]);
  const before = useMemo(() => (base === null ? null : definitionOf(base)), [base]);
  const context = useMemo(() => ({ base: before, fields, kinds }), [before, fields, kinds]);
  const read = useMemo(() => readDraft(draft, context), [draft, context]);
  const asked = usePreviewAsked(read.definition, read.problems, base?.schedule_id ?? null);
  const preview = useQuery(previewOf(asked));

  const isDirty = draft !== begun;
  useStay(isDirty);
  const shown = useMemo(() => shownPointers(draft, context), [draft, context]);
  const failure = isConflict(replace.error) ? null : (create.error ?? replace.error);
  const problems = useMemo(() => {
    const own = isTried ? read.problems : new Map<string, string>();
    const saving = problemsOf(failure, own, shown);
    // The preview reports problems of the trigger while typing; all others are reported on save.
    const timing = problemsOf(preview.error, new Map(), shown);
    const byField = new Map([...timing.byField, ...saving.byField]);
    return { byField, besides: saving.besides };
  }, [failure, isTried, read.problems, shown, preview.error]);

  const changes = before === null ? [] : differencesOf(before, read.definition);
  const title = base === null ? "New schedule" : `Edit ${base.name}`;

  function change(made: Partial<Draft>) {
    setDraft((present) => ({ ...present, ...made }));
    create.reset();
    replace.reset();
  }

  function focusProblem() {
    // Wait until invalid fields are marked.
    setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), 50);
  }

  function proceed(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (mayNotEdit !== null || isBusy) return;
    if (read.problems.size > 0) {
      focusProblem();
    } else if (base === null) {
      create.mutate(
        { definition: read.definition, reason },
        { onSuccess: (made) => onSaved(made, true), onError: focusProblem },
      );
    } else if (changes.length > 0) {
      setStep({ name: "review" });
    }
  }

  function save(definition: Definition, version: number) {
    if (base === null) return;
    replace.mutate(
      { id: base.schedule_id, definition, version, reason },
      {
        onSuccess: (made) => onSaved(made, false),
        onError: async (error) => {
          if (!isConflict(error)) {
            setStep({ name: "form" });
            focusProblem();
            return;
          }
          const theirs = await client.fetchQuery({ ...scheduleQuery(base.schedule_id), staleTime: 0 });
          if (isSame(before, definitionOf(theirs))) {
            // Paused, resumed, or changed back: the opened definition is still current, so save again.
            setBase(theirs);
            save(definition, theirs.aggregate_version);
          } else {
            setStep({ name: "conflict", theirs });
          }
        },
      },
    );
  }

  /** Continue editing `definition`, now based on the version saved by someone else. */
  function editOn(theirs: Schedule, definition: Definition) {
    setBase(theirs);
    setBegun(draftOf(definitionOf(theirs), myZone()));
    setDraft(draftOf(definition, myZone()));
    replace.reset();
    setStep({ name: "form" });
  }

  function leave() {
    if (isDirty && !isBusy) setLeaving(true);
    else onClose();
  }

  return (
    <Sheet
      title={title}
      description={base === null ? undefined : `Version ${base.aggregate_version}`}
      onClose={leave}
    >
      {base?.managed_by === "code" && step.name === "form" && <ManagedNote schedule={base} />}
      {base?.managed_by === "file" && step.name === "form" && <ManagedNote schedule={base} />}
      {step.name === "form" && (
        <FormProvider
          value={{
            draft,
            change,
            problem: (pointer) => problems.byField.get(pointer) ?? null,
            fields,
            task: known,
            kinds,
          }}
        >
          <form ref={form} onSubmit={proceed} noValidate className="flex min-h-full flex-col">
            <ScheduleForm asked={asked} wrong={[...problems.byField.keys()]} />
            <div className="mt-3">
              <FormProblem text={problems.besides} />
            </div>
            <Footer>
              {base !== null && (
                <span className="text-ink-soft mr-auto text-sm" role="status">
                  {changes.length === 0
                    ? "Nothing is changed"
                    : `${changes.length} ${changes.length === 1 ? "change" : "changes"}`}
                </span>
              )}
              <Button onClick={leave}>Cancel</Button>
              <Button
                type="submit"
                look="primary"
                isBusy={isBusy}
                whyNot={mayNotEdit ?? (base !== null && changes.length === 0 ? "Nothing is changed." : null)}
              >
                {base === null ? "Create" : "Review changes"}
              </Button>
            </Footer>
          </form>
        </FormProvider>
      )}
      {step.name === "review" && base !== null && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBusy) save(read.definition, base.aggregate_version);
          }}
          className="flex min-h-full flex-col gap-4"
        >
          <h3 className="font-semibold">What will change</h3>
          <Differences differences={changes} />
          <TextField
            label="Reason"
            hint="Optional. Kept with the version and in the audit."
            value={reason}
            onChange={setReason}
            maxLength={1000}
            autoComplete="off"
          />
          <FormProblem text={problems.besides} />
          <Footer>
            <Button onClick={() => setStep({ name: "form" })}>Back</Button>
            <Button type="submit" look="primary" isBusy={isBusy}>
              Save
            </Button>
          </Footer>
        </form>
      )}
      {step.name === "conflict" && before !== null && (
        <Conflict
          mine={read.definition}
          theirs={step.theirs}
          isBusy={isBusy}
          onMine={() => save(read.definition, step.theirs.aggregate_version)}
          onTheirs={() => onSaved(step.theirs, false)}
          onEdit={() => editOn(step.theirs, rebased(before, read.definition, definitionOf(step.theirs)))}
        />
      )}
      {isLeaving && (
        <Confirm
          title="Leave without saving?"
          verb="Leave"
          isDangerous
          asksReason={false}
          isBusy={false}
          error={null}
          onClose={() => setLeaving(false)}
          onConfirm={onClose}
        >
          What you have typed is lost.
        </Confirm>
      )}
    </Sheet>
  );
}

/** Sticks to the bottom while the form scrolls. */
function Footer({ children }: { children: React.ReactNode }) {
  return (
    <div className="border-line bg-surface sticky -bottom-4 z-10 -mx-5 mt-auto -mb-4 flex items-center justify-end gap-2 border-t px-5 py-3">
      {children}
    </div>
  );
}

function ManagedNote({ schedule }: { schedule: Schedule }) {
  const owner =
    schedule.managed_by === "code"
      ? "Code declares this schedule: when that code starts anew, it puts back what it says."
      : `Files${schedule.managed_source ? ` (${schedule.managed_source})` : ""} declare this schedule: the next apply puts back what they say.`;
  return (
    <p className="bg-warn-soft text-warn mb-3 flex items-start gap-2 rounded-md px-3 py-2 text-sm">
      <Icon name="warning" className="mt-0.5" />
      <span>{owner}</span>
    </p>
  );
}

function isConflict(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 412;
}

/** Let the browser ask before unsaved input is lost. */
function useStay(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isDirty]);
}
