// Bulk actions on schedules: the bar shown for a selection, and the confirmation dialog.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ProblemError } from "@/api/problem";
import { bulkCount, type Chosen, useBulk } from "@/api/schedules";
import { useWhyNot } from "@/api/session";
import type { BulkDone, ScheduleAct } from "@/api/types";
import { count } from "@/time/format";
import { BulkOutcome } from "@/ui/BulkOutcome";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Dialog } from "@/ui/Dialog";
import type { IconName } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { toast } from "@/ui/Toasts";
import { asInstant, UntilField } from "./PauseDialog";

interface ActLook {
  verb: string;
  done: string;
  icon: IconName;
  note: string;
}

const ACTS: Record<ScheduleAct, ActLook> = {
  pause: {
    verb: "Pause",
    done: "Paused",
    icon: "pause",
    note: "Nothing of them becomes due while they are paused.",
  },
  resume: {
    verb: "Resume",
    done: "Resumed",
    icon: "play",
    note: "They go on with their first time after now.",
  },
  trigger: { verb: "Run now", done: "Running", icon: "play", note: "Once each, besides their own times." },
  delete: {
    verb: "Delete",
    done: "Deleted",
    icon: "trash",
    note: "Their names become free. What waits is cancelled, what runs may finish, their history stays.",
  },
};
const ORDER: readonly ScheduleAct[] = ["trigger", "pause", "resume", "delete"];

interface BarProps {
  chosen: Chosen;
  isAll: boolean;
  /** Whether more rows may match than are shown. */
  hasMore: boolean;
  onAll: () => void;
  onClear: () => void;
  /** Name of a schedule that is shown in the list. Undefined: not shown. */
  nameOf: (id: string) => string | undefined;
  onDone: () => void;
}

export function BulkBar({ chosen, isAll, hasMore, onAll, onClear, nameOf, onDone }: BarProps) {
  const [act, setAct] = useState<ScheduleAct | null>(null);
  const mayNotSteer = useWhyNot("operator");
  const mayNotEdit = useWhyNot("editor");
  return (
    <>
      <section
        aria-label="Chosen schedules"
        className="animate-rise border-line-strong bg-raised shadow-high sticky bottom-4 z-20 mx-auto mt-3 flex w-fit max-w-full flex-wrap items-center gap-1.5 rounded-xl border py-1.5 pr-1.5 pl-4 text-sm"
      >
        <span role="status" className="font-medium">
          {isAll ? "All that match are chosen" : `${"ids" in chosen ? chosen.ids.length : 0} chosen`}
        </span>
        {!isAll && hasMore && (
          <Button look="link" size="small" onClick={onAll}>
            Choose all that match
          </Button>
        )}
        <span className="bg-line mx-1 hidden h-5 w-px sm:block" />
        {ORDER.map((each) => (
          <Button
            key={each}
            size="small"
            look={each === "delete" ? "quiet danger" : "quiet"}
            icon={ACTS[each].icon}
            whyNot={each === "delete" ? mayNotEdit : mayNotSteer}
            onClick={() => setAct(each)}
          >
            {ACTS[each].verb}
          </Button>
        ))}
        <IconButton icon="close" label="Choose none" side="top" onClick={onClear} />
      </section>
      {act !== null && (
        <BulkDialog
          act={act}
          chosen={chosen}
          nameOf={nameOf}
          onClose={() => setAct(null)}
          onDone={() => {
            setAct(null);
            onDone();
          }}
        />
      )}
    </>
  );
}

interface DialogProps {
  act: ScheduleAct;
  chosen: Chosen;
  nameOf: (id: string) => string | undefined;
  onClose: () => void;
  onDone: () => void;
}

const MAX_NAMES = 6;

/** Confirmation dialog. Shows the count first (dry run); if the count has changed since, nothing is done. */
function BulkDialog({ act, chosen, nameOf, onClose, onDone }: DialogProps) {
  const look = ACTS[act];
  const [until, setUntil] = useState("");
  const [outcome, setOutcome] = useState<BulkDone | null>(null);
  const dry = useQuery(bulkCount(act, chosen));
  const bulk = useBulk();
  const matched = dry.data?.matched;

  if (outcome !== null) {
    return <BulkOutcome did={look.done} outcome={outcome} nameOf={nameOf} onClose={onDone} />;
  }
  if (matched === undefined) {
    return (
      <Dialog title={look.verb} isOpen onOpenChange={(isOpen) => !isOpen && onClose()}>
        {dry.error ? (
          <ErrorState error={dry.error} onRetry={() => dry.refetch()} />
        ) : (
          <Skeleton className="mt-4 h-20" />
        )}
      </Dialog>
    );
  }
  const names = (dry.data?.items ?? []).slice(0, MAX_NAMES).map(({ id, name }) => name ?? nameOf(id) ?? id);
  return (
    <Confirm
      title={`${look.verb}: ${count(matched)} ${matched === 1 ? "schedule" : "schedules"}`}
      verb={`${look.verb} ${count(matched)}`}
      isDangerous={act === "delete"}
      whyNot={matched === 0 ? "There is none." : null}
      isBusy={bulk.isPending}
      error={bulk.error}
      onClose={onClose}
      onConfirm={(reason) =>
        bulk.mutate(
          {
            action: act,
            chosen,
            reason,
            until: act === "pause" ? asInstant(until) : undefined,
            expected: matched,
          },
          {
            onSuccess: (done) => {
              if (done.failed > 0) {
                setOutcome(done);
                return;
              }
              toast({
                tone: "good",
                text: `${look.done}: ${count(done.done)} ${done.done === 1 ? "schedule" : "schedules"}`,
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
      <p className="text-ink mt-2 break-words">
        {names.join(", ")}
        {matched > names.length && ` and ${count(matched - names.length)} more`}
      </p>
      {act === "pause" && (
        <div className="text-ink mt-4">
          <UntilField value={until} onChange={setUntil} error={bulk.error} />
        </div>
      )}
    </Confirm>
  );
}
