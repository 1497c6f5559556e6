import { type FormEvent, useState } from "react";
import { problemBesides, problemOf } from "@/api/problem";
import { usePause } from "@/api/schedules";
import type { Schedule } from "@/api/types";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { toast } from "@/ui/Toasts";

interface Props {
  schedule: Pick<Schedule, "schedule_id" | "name" | "paused">;
  onClose: () => void;
}

/** Dialog that pauses a schedule, with a reason and an optional end. */
export function PauseDialog({ schedule, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState("");
  const pause = usePause();

  function submit(event: FormEvent) {
    event.preventDefault();
    if (pause.isPending) return;
    pause.mutate(
      { id: schedule.schedule_id, reason: reason.trim(), until: asInstant(until) },
      {
        onSuccess: () => {
          toast({ tone: "good", text: `Paused ${schedule.name}` });
          onClose();
        },
      },
    );
  }

  return (
    <Dialog
      title={`Pause ${schedule.name}`}
      description="Nothing becomes due while it is paused; what runs goes on."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <TextField
          label="Reason"
          hint="Shown beside the schedule, and kept in the audit."
          value={reason}
          onChange={setReason}
          maxLength={1000}
          autoComplete="off"
          problem={problemOf(pause.error, "/reason")}
        />
        <UntilField value={until} onChange={setUntil} error={pause.error} />
        <FormProblem text={problemBesides(pause.error, ["/reason", "/until_ts"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={pause.isPending}>
            Pause
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface UntilProps {
  value: string;
  onChange: (value: string) => void;
  error: unknown;
}

export function UntilField({ value, onChange, error }: UntilProps) {
  return (
    <TextField
      label="Until"
      type="datetime-local"
      hint="In your time zone. Left empty: until somebody resumes it."
      value={value}
      onChange={onChange}
      problem={problemOf(error, "/until_ts")}
    />
  );
}

/** Convert a `datetime-local` value to an instant for the API. Undefined: none. */
export function asInstant(local: string): string | undefined {
  return local === "" ? undefined : new Date(local).toISOString();
}
