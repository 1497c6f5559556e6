import { Link } from "@/routing/Link";
import { Screen } from "@/shell/Screen";
import { Icon } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { ExecutionActions, nameOf } from "./actions";
import { ExecutionView } from "./ExecutionView";
import { ExecutionButtons, NeighbourButtons, useExecution } from "./parts";

const addressOf = (id: string) => `/executions/${id}`;

/** Page of one execution. */
export default function ExecutionPage({ id }: { id: string }) {
  const found = useExecution(id);
  const known = found.data;
  return (
    <ExecutionActions>
      <Link
        href={known ? `/executions?schedule_id=${known.schedule_id}` : "/executions"}
        className="text-ink-soft hover:text-ink -mt-1 mb-1 inline-flex max-w-full items-center gap-1 rounded text-xs [overflow-wrap:anywhere]"
      >
        <Icon name="left" size={12} />
        Executions{known && ` of ${nameOf(known)}`}
      </Link>
      <Screen
        title={known ? nameOf(known) : found.error ? "No such execution" : "Execution"}
        actions={
          known && (
            <>
              <NeighbourButtons execution={known} addressOf={addressOf} />
              <ExecutionButtons execution={known} />
            </>
          )
        }
      >
        <div className="border-line bg-surface shadow-low rounded-lg border p-4 sm:p-5">
          {known ? (
            <ExecutionView key={id} execution={known} isPage />
          ) : found.error ? (
            <ErrorState error={found.error} onRetry={() => found.refetch()} />
          ) : (
            <Skeleton className="h-96" />
          )}
        </div>
      </Screen>
    </ExecutionActions>
  );
}
