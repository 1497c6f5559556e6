// The result of a bulk action.

import type { BulkDone } from "@/api/types";
import { count } from "@/time/format";
import { Button } from "./Button";
import { Dialog } from "./Dialog";

interface Props {
  /** The action in the past tense: "Paused". */
  did: string;
  outcome: BulkDone;
  nameOf: (id: string) => string | undefined;
  onClose: () => void;
}

/** Dialog after a bulk action that failed in part: lists the items that failed, and why. */
export function BulkOutcome({ did, outcome, nameOf, onClose }: Props) {
  const failed = outcome.items.filter((item) => item.error !== null);
  return (
    <Dialog
      title={`${did}: ${count(outcome.done)}. Not done: ${count(outcome.failed)}`}
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <ul className="divide-line border-line mt-3 max-h-72 divide-y overflow-y-auto rounded-md border text-sm">
        {failed.map((item) => (
          <li key={item.id} className="px-3 py-2">
            <p className="font-medium">{item.name ?? nameOf(item.id) ?? item.id}</p>
            <p className="text-ink-soft">{item.error}</p>
          </li>
        ))}
      </ul>
      <div className="mt-4 flex justify-end">
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </div>
    </Dialog>
  );
}
