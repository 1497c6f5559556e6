import { navigate } from "@/routing/location";
import { Instant } from "@/time/Instant";
import { IconButton } from "@/ui/Button";
import { Sheet } from "@/ui/Dialog";
import { ErrorState, Skeleton } from "@/ui/State";
import { nameOf } from "./actions";
import { ExecutionView } from "./ExecutionView";
import { ExecutionButtons, NeighbourButtons, useExecution } from "./parts";

interface Props {
  id: string;
  /** URL that shows another execution over the same list. */
  addressOf: (id: string) => string;
  onClose: () => void;
}

/** Panel with one execution, over the list. */
export function ExecutionSheet({ id, addressOf, onClose }: Props) {
  const found = useExecution(id);
  const known = found.data;
  return (
    <Sheet
      title={known ? nameOf(known) : found.error ? "No such execution" : "Loading…"}
      description={
        known && (
          <>
            Execution for <Instant at={known.fire_ts} />
          </>
        )
      }
      actions={
        known && (
          <>
            <NeighbourButtons execution={known} addressOf={addressOf} />
            <span className="hidden sm:block">
              <IconButton
                icon="screen"
                label="Show as a page"
                onClick={() => navigate(`/executions/${id}`)}
              />
            </span>
            <ExecutionButtons execution={known} />
          </>
        )
      }
      onClose={onClose}
    >
      {known ? (
        <ExecutionView key={id} execution={known} isPage={false} />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}
