// Retry and cancel an execution, from any screen that shows one. Also shows the confirmation dialog.

import { createContext, type ReactNode, useContext, useMemo, useState } from "react";
import { type ExecutionAct, useExecutionAct } from "@/api/execution-list";
import { useWhyNot } from "@/api/session";
import type { Execution } from "@/api/types";
import { Confirm } from "@/ui/Confirm";
import { toast } from "@/ui/Toasts";
import { whyNotCancel, whyNotRetry } from "./words";

interface Actions {
  ask: (act: ExecutionAct, execution: Execution) => void;
  /** Why the action is not possible: the reader's role or the execution's status. Null: it is possible. */
  whyNot: (act: ExecutionAct, execution: Execution) => string | null;
}

const Context = createContext<Actions | null>(null);

export function useExecutionActions(): Actions {
  const actions = useContext(Context);
  if (actions === null) {
    throw new Error("executions are shown outside of ExecutionActions");
  }
  return actions;
}

interface Look {
  title: string;
  verb: string;
  done: string;
  note: string;
}

const LOOKS: Record<ExecutionAct, Look> = {
  retry: {
    title: "Try again?",
    verb: "Try again",
    done: "Trying again",
    note: "The same execution, with all of its attempts anew.",
  },
  cancel: {
    title: "Cancel the execution?",
    verb: "Stop it",
    done: "Cancelling",
    note: "What waits ends at once. What runs is stopped; what it has done stays done.",
  },
};

export function ExecutionActions({ children }: { children: ReactNode }) {
  const [asking, setAsking] = useState<{ act: ExecutionAct; execution: Execution } | null>(null);
  const acting = useExecutionAct();
  const mayNot = useWhyNot("operator");
  const actions = useMemo<Actions>(
    () => ({
      ask: (act, execution) => setAsking({ act, execution }),
      whyNot: (act, execution) =>
        mayNot ?? (act === "retry" ? whyNotRetry(execution) : whyNotCancel(execution)),
    }),
    [mayNot],
  );

  function close() {
    setAsking(null);
    acting.reset();
  }

  const look = asking && LOOKS[asking.act];
  return (
    <Context value={actions}>
      {children}
      {asking && look && (
        <Confirm
          title={look.title}
          verb={look.verb}
          isDangerous={asking.act === "cancel"}
          isBusy={acting.isPending}
          error={acting.error}
          onClose={close}
          onConfirm={(reason) =>
            acting.mutate(
              { act: asking.act, id: asking.execution.execution_id, reason },
              {
                onSuccess: () => {
                  toast({ tone: "good", text: `${look.done} ${nameOf(asking.execution)}` });
                  close();
                },
              },
            )
          }
        >
          <p className="text-ink font-medium break-words">{nameOf(asking.execution)}</p>
          <p className="mt-1">{look.note}</p>
        </Confirm>
      )}
    </Context>
  );
}

export function nameOf({ schedule_name: name }: Execution): string {
  return name ?? "a deleted schedule";
}
