import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { type Rule, rule as ruleQuery, useMakeRule, useReplaceRule } from "@/api/notifications";
import { ProblemError } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { problemsOf } from "@/screens/schedule-form/problems";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Sheet } from "@/ui/Dialog";
import { FormProblem } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { toast } from "@/ui/Toasts";
import { RuleFields } from "./RuleFields";
import { blankAbout, draftOf, type RuleDraft, readDraft, shownPointers } from "./rule-draft";

interface Props {
  /** Null: a new rule. */
  id: string | null;
  /** Id of the schedule preselected for a new rule. Empty: none. */
  about?: string;
  onClose: () => void;
}

/** Panel to view and edit one rule. */
export function RuleSheet({ id, about = "", onClose }: Props) {
  const found = useQuery({ ...ruleQuery(id ?? ""), enabled: id !== null, refetchInterval: 10_000 });
  const isUnknown = found.error instanceof ProblemError && [404, 422].includes(found.error.status);
  if (id === null) {
    return <Editor known={null} begun={blankAbout(about)} onClose={onClose} />;
  }
  if (found.data) {
    return <Editor known={found.data} begun={draftOf(found.data)} onClose={onClose} />;
  }
  return (
    <Sheet title="Rule" onClose={onClose}>
      {isUnknown ? (
        <EmptyState icon="question" title="There is no such rule" />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-96" />
      )}
    </Sheet>
  );
}

interface EditorProps {
  /** The current version from the server; the form may be based on an older one. Null: a new rule. */
  known: Rule | null;
  /** Initial values of the form. */
  begun: RuleDraft;
  onClose: () => void;
}

function Editor({ known, begun, onClose }: EditorProps) {
  const client = useQueryClient();
  const mayNotEdit = useWhyNot("editor");
  const make = useMakeRule();
  const replace = useReplaceRule();
  // Compare changes with the version that was opened, even if newer ones arrive meanwhile.
  const [base, setBase] = useState(begun);
  const [draft, setDraft] = useState(begun);
  const [isTried, setTried] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const isBusy = make.isPending || replace.isPending;

  const read = useMemo(() => readDraft(draft), [draft]);
  const opened = useMemo(() => definitionText(base), [base]);
  const isDirty = JSON.stringify(read.definition) !== opened;
  const isNewer = known !== null && definitionText(draftOf(known)) !== opened;
  const failure = make.error ?? replace.error;
  const problems = useMemo(
    () => problemsOf(failure, isTried ? read.problems : new Map(), shownPointers(read.definition.on)),
    [failure, isTried, read],
  );

  function change(made: Partial<RuleDraft>) {
    setDraft((present) => ({ ...present, ...made }));
    make.reset();
    replace.reset();
  }

  function focusProblem() {
    // Wait until invalid fields are marked.
    setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), 50);
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (mayNotEdit !== null || isBusy || (known !== null && !isDirty)) return;
    if (read.problems.size > 0) {
      focusProblem();
      return;
    }
    if (known === null) {
      make.mutate(
        { ...read.definition, enabled: true, muted_until_ts: null },
        { onSuccess: tellSaved, onError: focusProblem },
      );
    } else {
      save(known);
    }
  }

  /** Replace `present`, the current version of the rule. */
  function save(present: Rule) {
    const { enabled, muted_until_ts = null } = present; // not part of the form: keep them
    replace.mutate(
      {
        id: present.rule_id,
        spec: { ...read.definition, enabled, muted_until_ts },
        version: present.version,
      },
      {
        onSuccess: tellSaved,
        onError: async (error) => {
          focusProblem();
          if (!(error instanceof ProblemError) || error.status !== 412) return;
          const asked = client.fetchQuery({ ...ruleQuery(present.rule_id), staleTime: 0 });
          const theirs = await asked.catch(() => null);
          // Only the mute or the switch has changed: the opened definition is still current, so save again.
          if (theirs !== null && definitionText(draftOf(theirs)) === opened) save(theirs);
        },
      },
    );
  }

  function tellSaved(made: Rule) {
    toast({ tone: "good", text: `${known === null ? "Made" : "Saved"} ${made.name}` });
    onClose();
  }

  function takeTheirs(theirs: Rule) {
    setBase(draftOf(theirs));
    setDraft(draftOf(theirs));
    make.reset();
    replace.reset();
  }

  function leave() {
    if (isDirty && !isBusy && mayNotEdit === null) setLeaving(true);
    else onClose();
  }

  return (
    <Sheet
      title={known === null ? "New notification rule" : base.name}
      description={known === null ? "Tells somebody when schedules fail, and when they recover." : undefined}
      onClose={leave}
    >
      <form ref={form} onSubmit={submit} noValidate className="flex min-h-full flex-col">
        <RuleFields
          draft={draft}
          change={change}
          isFixed={mayNotEdit !== null}
          on={read.definition.on}
          problem={(pointer) => problems.byField.get(pointer) ?? null}
        />
        <Footer>
          <FormProblem text={problems.besides} />
          {/* The user's own save also looks like a newer version until this panel closes. */}
          {known !== null && isNewer && !replace.isPending && !replace.isSuccess && (
            <Newer by={known.updated_by ?? null} onTake={() => takeTheirs(known)} />
          )}
          <div className="flex items-center justify-end gap-2">
            <Button onClick={leave}>{mayNotEdit === null ? "Cancel" : "Close"}</Button>
            <Button
              type="submit"
              look="primary"
              isBusy={isBusy}
              whyNot={mayNotEdit ?? (known !== null && !isDirty ? "Nothing is changed." : null)}
            >
              {known === null ? "Make the rule" : "Save"}
            </Button>
          </div>
        </Footer>
      </form>
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

/** Definition as text, for comparison. */
function definitionText(draft: RuleDraft): string {
  return JSON.stringify(readDraft(draft).definition);
}

/** Sticks to the bottom while the form scrolls. */
function Footer({ children }: { children: ReactNode }) {
  return (
    <div className="border-line bg-surface sticky -bottom-4 z-10 -mx-5 mt-auto -mb-4 flex flex-col gap-3 border-t px-5 py-3">
      {children}
    </div>
  );
}

function Newer({ by, onTake }: { by: string | null; onTake: () => void }) {
  return (
    <div
      role="status"
      className="bg-warn-soft text-warn flex items-center gap-2 rounded-md px-3 py-2 text-sm"
    >
      <Icon name="warning" />
      <span className="min-w-0 grow">{by ?? "Somebody"} has changed it meanwhile. Saving replaces that.</span>
      <Button size="small" onClick={onTake}>
        Take theirs
      </Button>
    </div>
  );
}
