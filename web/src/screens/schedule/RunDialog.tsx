import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { taskFunction } from "@/api/schedule-editing";
import { useRunWith } from "@/api/schedule-history";
import { useWhyNot } from "@/api/session";
import { isFunction, type Schedule, type TriggerNow } from "@/api/types";
import { navigate } from "@/routing/location";
import { problemsOf } from "@/screens/schedule-form/problems";
import { SchemaForm } from "@/screens/schedule-form/SchemaForm";
import {
  changedValues,
  fieldsOf,
  objectDraft,
  readObject,
  shownPaths,
} from "@/screens/schedule-form/schema-fields";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { toast } from "@/ui/Toasts";

/** Dialog that runs a schedule now, optionally with other arguments. */
export function RunDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const { target } = schedule;
  const own = isFunction(target) ? (target.args ?? {}) : {};
  const task = useQuery(taskFunction(isFunction(target) ? target.name : "")).data;
  const fields = useMemo(() => (task ? fieldsOf(task.args_schema) : null), [task]);
  const [draft, setDraft] = useState(() => objectDraft(own));
  const [reason, setReason] = useState("");
  const [isTried, setTried] = useState(false);
  const mayNotSteer = useWhyNot("operator");
  const run = useRunWith(schedule.schedule_id);
  const read = readObject(draft, fields);
  const shown = ["/reason", "/args", ...shownPaths(draft, fields).map((path) => `/args/${path}`)];
  const mine = new Map(
    isTried
      ? Object.entries(read.problems).map(([name, text]) => [name === "" ? "/args" : `/args/${name}`, text])
      : [],
  );
  const problems = problemsOf(run.error, mine, shown);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (run.isPending || mayNotSteer !== null || Object.keys(read.problems).length > 0) return;
    run.mutate(
      { args: changedValues(own, read.value) as TriggerNow["args"], reason: reason.trim() },
      {
        onSuccess: (made) => {
          toast({
            tone: "good",
            text: `Running ${schedule.name} now`,
            action: { label: "Show", run: () => navigate(`/executions/${made.execution_id}`) },
          });
          onClose();
        },
      },
    );
  }

  return (
    <Dialog
      title={`Run ${schedule.name} now`}
      description="Once, besides its own times, and also while it is paused."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} noValidate className="mt-4 flex flex-col gap-4">
        {isFunction(target) ? (
          <SchemaForm
            title="Arguments"
            none="It takes no arguments."
            isCode
            fields={fields}
            draft={draft}
            onChange={(made) => {
              setDraft(made);
              run.reset();
            }}
            problem={(name) => problems.byField.get(name === "" ? "/args" : `/args/${name}`) ?? null}
          />
        ) : (
          <p className="text-ink-soft text-sm">
            It runs as it is defined: only task functions take other arguments.
          </p>
        )}
        <TextField
          label="Reason"
          hint="Optional. Kept in the audit."
          value={reason}
          onChange={setReason}
          maxLength={1000}
          autoComplete="off"
          problem={problems.byField.get("/reason") ?? null}
        />
        <FormProblem text={problems.besides} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" icon="play" isBusy={run.isPending} whyNot={mayNotSteer}>
            Run now
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
