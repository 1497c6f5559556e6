// Shared by the panel and the page of an execution: buttons and live updates.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { tellExecution } from "@/api/execution-list";
import { execution as executionOf } from "@/api/executions";
import { useTold } from "@/api/live";
import { neighbours } from "@/api/neighbours";
import type { Told } from "@/api/stream";
import { type Execution, isOpen } from "@/api/types";
import { navigate } from "@/routing/location";
import { Button, IconButton } from "@/ui/Button";
import { useExecutionActions } from "./actions";

const REREAD_MS = 5000;

/** Load one execution and keep it up to date: from the event stream, and by polling while it is open. */
export function useExecution(id: string) {
  const client = useQueryClient();
  const listen = useCallback(
    (told: Told) => {
      if (told.kind !== "execution" || told.data.execution_id !== id) return;
      tellExecution(client, told.data);
      // The stream does not report attempts, nor what a waiting execution waits for.
      void client.invalidateQueries({ queryKey: ["execution", id, "attempts"] });
    },
    [client, id],
  );
  useTold(listen);
  return useQuery({
    ...executionOf(id),
    refetchInterval: ({ state }) => (state.data && isOpen(state.data.status) ? REREAD_MS : false),
  });
}

export function ExecutionButtons({ execution }: { execution: Execution }) {
  const { ask, whyNot } = useExecutionActions();
  const isRunning = isOpen(execution.status);
  return isRunning ? (
    <Button icon="stop" whyNot={whyNot("cancel", execution)} onClick={() => ask("cancel", execution)}>
      Cancel
    </Button>
  ) : (
    <Button icon="retry" whyNot={whyNot("retry", execution)} onClick={() => ask("retry", execution)}>
      Try again
    </Button>
  );
}

interface NeighbourProps {
  execution: Execution;
  addressOf: (id: string) => string;
}

/** Links to the previous and the next execution of the same schedule. */
export function NeighbourButtons({ execution, addressOf }: NeighbourProps) {
  const found = useQuery(neighbours(execution));
  const { before, after } = found.data ?? { before: null, after: null };
  const none = (words: string) => (found.isPending ? "Looking for it." : words);
  return (
    <span className="flex">
      <IconButton
        icon="left"
        label="Previous execution of the schedule"
        whyNot={before === null ? none("there is none.") : null}
        onClick={() => before && navigate(addressOf(before.execution_id))}
      />
      <IconButton
        icon="right"
        label="Next execution of the schedule"
        whyNot={after === null ? none("this is the latest.") : null}
        onClick={() => after && navigate(addressOf(after.execution_id))}
      />
    </span>
  );
}
