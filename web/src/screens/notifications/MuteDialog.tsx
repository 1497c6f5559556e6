import { type FormEvent, useState } from "react";
import { type Rule, useChangeRule } from "@/api/notifications";
import { problemBesides, problemOf } from "@/api/problem";
import { Choices } from "@/screens/schedule-form/controls";
import { presently } from "@/time/clock";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { toast } from "@/ui/Toasts";
import { mutedUntil, SPAN_WORDS, SPANS, type Span } from "./mute";

export function MuteDialog({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const change = useChangeRule();
  const [span, setSpan] = useState<Span>("1");
  const [local, setLocal] = useState("");
  const whyNot =
    span === "time" && mutedUntil(span, local, presently()) === null ? "Say a time that is to come." : null;

  function submit(event: FormEvent) {
    event.preventDefault();
    const until = mutedUntil(span, local, presently());
    if (change.isPending || until === null) return;
    change.mutate(
      { id: rule.rule_id, muted_until_ts: until },
      {
        onSuccess: () => {
          toast({ tone: "good", text: `Muted ${rule.name}` });
          onClose();
        },
      },
    );
  }

  return (
    <Dialog
      title={`Mute ${rule.name}`}
      description="Nothing is told of what happens until then, not even afterwards."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <Choices<Span>
          legend="For how long"
          value={span}
          choices={SPANS.map((value) => ({ value, label: SPAN_WORDS[value] }))}
          onChange={setSpan}
        />
        {span === "time" && (
          <TextField
            label="Until"
            type="datetime-local"
            hint="In your time zone."
            value={local}
            onChange={setLocal}
            problem={problemOf(change.error, "/muted_until_ts")}
          />
        )}
        <FormProblem text={problemBesides(change.error, span === "time" ? ["/muted_until_ts"] : [])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={change.isPending} whyNot={whyNot}>
            Mute
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
