// Bulk actions on executions: the bar shown for a selection, and the confirmation dialog.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import {
  type ChosenExecutions,
  type ExecutionAct,
  executionBulkCount,
  useExecutionBulk,
} from "@/api/execution-list";
import { ProblemError, problemBesides } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import type { BulkDone, Execution } from "@/api/types";
import { nameOf } from "@/screens/execution/actions";
import { count } from "@/time/format";
import { BulkOutcome } from "@/ui/BulkOutcome";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Dialog } from "@/ui/Dialog";
import { FormProblem } from "@/ui/Field";
import type { IconName } from "@/ui/Icon";
import { Skeleton } from "@/ui/State";
import { toast } from "@/ui/Toasts";
import { canBe, narrowed } from "./filters";

interface ActLook {
  verb: string;
  /** Label of the confirming button. A bare "Cancel" would seem to close the dialog. */
  ask: string;
  done: string;
  icon: IconName;
  note: string;
  /** Why none of the selected executions allows the action. */
  none: string;
}

const ACTS: Record<ExecutionAct, ActLook> = {
  retry: {
    verb: "Try again",
    ask: "Retry",
    done: "Trying again",
    icon: "retry",
    note: "The same executions, each with all of its attempts anew.",
    none: "None of them has ended badly.",
  },
  cancel: {
    verb: "Cancel them",
    ask: "Stop",
    done: "Cancelling",
    icon: "stop",
    note: "What waits ends at once. What runs is stopped; what it has done stays done.",
    none: "All of them have ended.",
  },
};

interface BarProps {
  chosen: ChosenExecutions;
  isAll: boolean;
  /** The rows shown in the list. */
  rows: readonly Execution[];
  hasMore: boolean;
  onAll: () => void;
  onClear: () => void;
  onDone: () => void;
}

export function ExecutionBulkBar({ chosen, isAll, rows, hasMore, onAll, onClear, onDone }: BarProps) {
  const [asking, setAsking] = useState<{ act: ExecutionAct; chosen: ChosenExecutions } | null>(null);
  const mayNot = useWhyNot("operator");
  const number = "ids" in chosen ? chosen.ids.length : 0;
  return (
    <>
      <section
        aria-label="Chosen executions"
        className="animate-rise border-line-strong bg-raised shadow-high sticky bottom-4 z-20 mx-auto mt-3 flex w-fit max-w-full flex-wrap items-center gap-1.5 rounded-xl border py-1.5 pr-1.5 pl-4 text-sm"
      >
        <span role="status" className="font-medium">
          {isAll ? "All that match are chosen" : `${number} chosen`}
        </span>
        {!isAll && hasMore && (
          <Button look="link" size="small" onClick={onAll}>
            Choose all that match
          </Button>
        )}
        <span className="bg-line mx-1 hidden h-5 w-px sm:block" />
        {(["retry", "cancel"] as const).map((act) => {
          const fit = fitting(act, chosen, rows);
          return (
            <Button
              key={act}
              size="small"
              look={act === "cancel" ? "quiet danger" : "quiet"}
              icon={ACTS[act].icon}
              whyNot={mayNot ?? (fit === null ? ACTS[act].none : null)}
              onClick={() => fit && setAsking({ act, chosen: fit })}
            >
              {ACTS[act].verb}
            </Button>
          );
        })}
        <IconButton icon="close" label="Choose none" side="top" onClick={onClear} />
      </section>
      {asking !== null && (
        <BulkDialog
          act={asking.act}
          chosen={asking.chosen}
          leftOut={"ids" in asking.chosen ? number - asking.chosen.ids.length : 0}
          rows={rows}
          onClose={() => setAsking(null)}
          onDone={() => {
            setAsking(null);
            onDone();
          }}
        />
      )}
    </>
  );
}

/** The selected executions that allow the action. Null: none. */
function fitting(
  act: ExecutionAct,
  chosen: ChosenExecutions,
  rows: readonly Execution[],
): ChosenExecutions | null {
  if ("filter" in chosen) {
    const filter = narrowed(act, chosen.filter);
    return filter && { filter };
  }
  const wanted = new Set(chosen.ids);
  const fit = rows.filter((row) => wanted.has(row.execution_id) && canBe(act, row.status));
  return fit.length === 0 ? null : { ids: fit.map((row) => row.execution_id) };
}

interface DialogProps {
  act: ExecutionAct;
  chosen: ChosenExecutions;
  /** Number of selected executions that do not allow the action. */
  leftOut: number;
  rows: readonly Execution[];
  onClose: () => void;
  onDone: () => void;
}

const MAX_NAMES = 6;

/** Confirmation dialog. Shows the count first (dry run); if the count has changed since, nothing is done. */
function BulkDialog({ act, chosen, leftOut, rows, onClose, onDone }: DialogProps) {
  const look = ACTS[act];
  const [outcome, setOutcome] = useState<BulkDone | null>(null);
  const dry = useQuery(executionBulkCount(act, chosen));
  const bulk = useExecutionBulk();
  const names = useMemo(() => new Map(rows.map((row) => [row.execution_id, nameOf(row)])), [rows]);
  const matched = dry.data?.matched;

  if (outcome !== null) {
    return <BulkOutcome did={look.done} outcome={outcome} nameOf={(id) => names.get(id)} onClose={onDone} />;
  }
  if (matched === undefined) {
    return (
      <Dialog title={look.verb} isOpen onOpenChange={(isOpen) => !isOpen && onClose()}>
        {dry.error ? (
          <div className="mt-3 flex flex-col gap-4">
            <FormProblem text={tooMany(dry.error) ?? problemBesides(dry.error, [])} />
            <div className="flex justify-end">
              <Button onClick={onClose}>Close</Button>
            </div>
          </div>
        ) : (
          <Skeleton className="mt-4 h-20" />
        )}
      </Dialog>
    );
  }
  const counted = countsOf(
    (dry.data?.items ?? []).map(({ id, name }) => name ?? names.get(id) ?? "a deleted schedule"),
  );
  return (
    <Confirm
      title={`${look.verb}: ${count(matched)} ${matched === 1 ? "execution" : "executions"}`}
      verb={`${look.ask} ${count(matched)}`}
      isDangerous={act === "cancel"}
      whyNot={matched === 0 ? "There is none." : null}
      isBusy={bulk.isPending}
      error={bulk.error}
      onClose={onClose}
      onConfirm={(reason) =>
        bulk.mutate(
          { action: act, chosen, reason, expected: matched },
          {
            onSuccess: (done) => {
              if (done.failed > 0) {
                setOutcome(done);
                return;
              }
              toast({
                tone: "good",
                text: `${look.done}: ${count(done.done)} ${done.done === 1 ? "execution" : "executions"}`,
              });
              onDone();
            },
            onError: (error) => {
              if (error instanceof ProblemError && error.status === 409) void dry.refetch();
            },
          },
        )
      }
    >
      <p>{look.note}</p>
      <ul className="text-ink mt-2">
        {counted.slice(0, MAX_NAMES).map(([name, number]) => (
          <li key={name} className="flex gap-3">
            <span className="truncate">{name}</span>
            <span className="numbers text-ink-soft ml-auto">{count(number)}</span>
          </li>
        ))}
      </ul>
      {counted.length > MAX_NAMES && <p>and of {count(counted.length - MAX_NAMES)} more schedules</p>}
      {leftOut > 0 && <p className="mt-2">{`${count(leftOut)} more are chosen that it can't be done to.`}</p>}
    </Confirm>
  );
}

function tooMany(error: unknown): string | null {
  const isIt = error instanceof ProblemError && error.errors.some((each) => each.code === "too_many");
  return isIt ? "More than 1,000 match. Narrow the filters, and go on in several steps." : null;
}

/** Count each name, highest count first. */
function countsOf(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}
