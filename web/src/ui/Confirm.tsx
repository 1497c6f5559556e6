import { type FormEvent, type ReactNode, useState } from "react";
import { problemBesides, problemOf } from "@/api/problem";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { FormProblem, TextField } from "./Field";

const MAX_REASON = 1000;

interface Props {
  title: ReactNode;
  /** Description of what will happen. */
  children?: ReactNode;
  /** The verb on the button. */
  verb: string;
  isDangerous?: boolean;
  /** Whether to ask for a reason, which is recorded in the audit log. */
  asksReason?: boolean;
  /** Why the user can't confirm yet; null: can confirm. */
  whyNot?: string | null;
  isBusy: boolean;
  error: unknown;
  onConfirm: (reason: string) => void;
  onClose: () => void;
}

/** Confirmation dialog for an action that can't easily be undone. */
export function Confirm({
  title,
  children,
  verb,
  isDangerous = false,
  asksReason = true,
  whyNot = null,
  isBusy,
  error,
  onConfirm,
  onClose,
}: Props) {
  const [reason, setReason] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (whyNot === null && !isBusy) onConfirm(reason.trim());
  }
  return (
    <Dialog title={title} isOpen onOpenChange={(isOpen) => !isOpen && onClose()}>
      <form onSubmit={submit} className="mt-3 flex flex-col gap-4">
        {children && <div className="text-ink-soft text-sm">{children}</div>}
        {asksReason && (
          <TextField
            label="Reason"
            hint="Optional. Kept in the audit."
            value={reason}
            onChange={setReason}
            maxLength={MAX_REASON}
            problem={problemOf(error, "/reason")}
            autoComplete="off"
          />
        )}
        <FormProblem text={problemBesides(error, ["/reason"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={isDangerous ? "danger" : "primary"} isBusy={isBusy} whyNot={whyNot}>
            {verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
