// Actions on a schedule, from any place that shows one: row, menu or panel. Also shows their dialogs.

import { createContext, type ReactNode, useContext, useMemo, useState } from "react";
import { isInDoubt, textOf } from "@/api/problem";
import { useBulk, usePause, useResume, useTrigger } from "@/api/schedules";
import { useWhyNot } from "@/api/session";
import type { Schedule } from "@/api/types";
import { navigate } from "@/routing/location";
import { Confirm } from "@/ui/Confirm";
import { toast } from "@/ui/Toasts";
import { PauseDialog } from "./PauseDialog";

type Known = Pick<Schedule, "schedule_id" | "name" | "paused">;

interface Actions {
  /** Pause at once. A toast offers to undo it. */
  pause: (schedule: Known) => void;
  resume: (schedule: Known) => void;
  trigger: (schedule: Known) => void;
  /** Ask for a reason and an end, then pause. */
  askPause: (schedule: Known) => void;
  /** Ask for confirmation and a reason, then delete. */
  askDelete: (schedule: Known) => void;
  /** Id of the schedule that is being paused or resumed. Null: none. */
  switchingId: string | null;
  mayNotSteer: string | null;
  mayNotEdit: string | null;
}

const Context = createContext<Actions | null>(null);

export function useScheduleActions(): Actions {
  const actions = useContext(Context);
  if (actions === null) {
    throw new Error("schedules are shown outside of ScheduleActions");
  }
  return actions;
}

type Asking = { what: "pause" | "delete"; schedule: Known };

export function ScheduleActions({
  children,
  onDeleted,
}: {
  children: ReactNode;
  onDeleted?: (id: string) => void;
}) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const { mutate: pauseIt, ...pausing } = usePause();
  const { mutate: resumeIt, ...resuming } = useResume();
  const { mutate: triggerIt } = useTrigger();
  const deleting = useBulk();
  const mayNotSteer = useWhyNot("operator");
  const mayNotEdit = useWhyNot("editor");
  const switchingId =
    (pausing.isPending && pausing.variables.id) || (resuming.isPending && resuming.variables.id) || null;

  const acts = useMemo(() => {
    function pause(schedule: Known) {
      pauseIt(
        { id: schedule.schedule_id },
        {
          onSuccess: () =>
            toast({
              tone: "good",
              text: `Paused ${schedule.name}`,
              action: { label: "Undo", run: () => resume(schedule) },
            }),
          onError: (error) =>
            toast({ tone: "bad", text: `${schedule.name} is not paused`, detail: textOf(error) }),
        },
      );
    }
    function resume(schedule: Known) {
      resumeIt(
        { id: schedule.schedule_id },
        {
          onSuccess: () => toast({ tone: "good", text: `Resumed ${schedule.name}` }),
          onError: (error) =>
            toast({ tone: "bad", text: `${schedule.name} is not resumed`, detail: textOf(error) }),
        },
      );
    }
    function trigger(schedule: Known) {
      triggerIt(
        { id: schedule.schedule_id },
        {
          onSuccess: (made) =>
            toast({
              tone: "good",
              text: `Running ${schedule.name} now`,
              action: { label: "Show", run: () => navigate(`/executions/${made.execution_id}`) },
            }),
          onError: (error) =>
            toast({
              tone: "bad",
              text: isInDoubt(error)
                ? `${schedule.name} may have been started`
                : `${schedule.name} was not started`,
              detail: textOf(error),
            }),
        },
      );
    }
    return { pause, resume, trigger };
  }, [pauseIt, resumeIt, triggerIt]);

  const actions = useMemo<Actions>(
    () => ({
      ...acts,
      askPause: (schedule) => setAsking({ what: "pause", schedule }),
      askDelete: (schedule) => setAsking({ what: "delete", schedule }),
      switchingId,
      mayNotSteer,
      mayNotEdit,
    }),
    [acts, switchingId, mayNotSteer, mayNotEdit],
  );

  function close() {
    setAsking(null);
    deleting.reset();
  }

  return (
    <Context value={actions}>
      {children}
      {asking?.what === "pause" && <PauseDialog schedule={asking.schedule} onClose={close} />}
      {asking?.what === "delete" && (
        <Confirm
          title={`Delete ${asking.schedule.name}?`}
          verb="Delete"
          isDangerous
          isBusy={deleting.isPending}
          error={deleting.error}
          onClose={close}
          onConfirm={(reason) =>
            deleting.mutate(
              { action: "delete", chosen: { ids: [asking.schedule.schedule_id] }, reason },
              {
                onSuccess: ({ items }) => {
                  const problem = items[0]?.error ?? null;
                  close();
                  if (problem === null) onDeleted?.(asking.schedule.schedule_id);
                  toast(
                    problem === null
                      ? { tone: "good", text: `Deleted ${asking.schedule.name}` }
                      : { tone: "bad", text: `${asking.schedule.name} is not deleted`, detail: problem },
                  );
                },
              },
            )
          }
        >
          Its name becomes free. What waits is cancelled, what runs may finish, its history stays.
        </Confirm>
      )}
    </Context>
  );
}
