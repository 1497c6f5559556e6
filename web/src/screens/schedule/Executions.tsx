import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { executionsOf } from "@/api/schedule-history";
import { type Execution, isBad, type Schedule, STATUSES, type Status } from "@/api/types";
import { Link } from "@/routing/Link";
import { zoneOf } from "@/screens/schedules/words";
import { duration } from "@/time/format";
import { Instant, RelativeTime } from "@/time/Instant";
import { StatusBadge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Facet, words } from "@/ui/Filters";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";

interface Props {
  schedule: Schedule;
  status: readonly Status[];
  onStatus: (status: readonly Status[]) => void;
}

const idOf = (execution: Execution) => execution.execution_id;

/** Executions of the schedule, latest first. */
export function Executions({ schedule, status, onStatus }: Props) {
  const list = useInfiniteQuery({
    ...executionsOf(schedule.schedule_id, status),
    placeholderData: keepPreviousData,
  });
  const fresh = useMemo(() => list.data?.pages.flatMap((page) => page.items), [list.data]);
  const steady = useSteadyRows(fresh, idOf, JSON.stringify([status, list.isPlaceholderData]));
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-center gap-2">
        <Facet label="Status" choices={words(STATUSES)} chosen={status} onChange={onStatus} />
        {status.length > 0 && (
          <Button look="quiet" onClick={() => onStatus([])}>
            Clear
          </Button>
        )}
        <Link
          href={`/executions?schedule_id=${schedule.schedule_id}`}
          className="text-accent ml-auto text-sm hover:underline"
        >
          Among all executions
        </Link>
      </div>
      {list.isPending ? (
        <Skeleton className="h-64" />
      ) : list.error && steady.rows.length === 0 ? (
        <ErrorState error={list.error} onRetry={() => list.refetch()} />
      ) : steady.rows.length === 0 ? (
        <EmptyState icon="executions" title={status.length > 0 ? "None stands so" : "Nothing has run yet"} />
      ) : (
        <div className="border-line bg-surface overflow-hidden rounded-lg border">
          <NewsBar steady={steady} />
          <ul className="divide-line divide-y">
            {steady.rows.map((execution) => (
              <Row
                key={execution.execution_id}
                execution={execution}
                zone={zoneOf(schedule.trigger)}
                isGone={steady.gone.has(execution.execution_id)}
              />
            ))}
          </ul>
          {list.hasNextPage && (
            <div className="border-line flex justify-center border-t p-2">
              <Button look="quiet" isBusy={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
                Show more
              </Button>
            </div>
          )}
        </div>
      )}
    </div>
  );
}

interface RowProps {
  execution: Execution;
  zone: string | null;
  isGone: boolean;
}

function Row({ execution, zone, isGone }: RowProps) {
  const { status, started_ts: started, duration_seconds: took } = execution;
  const byHand = execution.triggered_by !== "scheduler";
  const why = isBad(status) ? (execution.error ?? execution.reason) : execution.reason;
  return (
    <li className={isGone ? "opacity-45" : ""}>
      <Link
        href={`/executions/${execution.execution_id}`}
        className="hover:bg-hover flex flex-wrap items-center gap-x-3 gap-y-0.5 px-3 py-2 text-sm focus-visible:-outline-offset-2"
      >
        <Instant at={execution.fire_ts} zone={zone} className="min-w-18 shrink-0 sm:w-32" />
        <StatusBadge status={status} />
        {took !== null && <span className="numbers text-ink-soft text-xs">{duration(took)}</span>}
        {execution.attempt > 1 && <span className="text-ink-soft text-xs">attempt {execution.attempt}</span>}
        {byHand && (
          <span className="text-ink-soft text-xs">
            {execution.triggered_by}
            {execution.triggered_by_user && ` by ${execution.triggered_by_user}`}
          </span>
        )}
        <span className="text-ink-faint ml-auto text-xs">
          {started ? <RelativeTime at={started} zone={zone} /> : ""}
        </span>
        {why && (
          <span className="text-ink-soft w-full truncate text-xs" title={why}>
            {why.split("\n")[0]}
          </span>
        )}
      </Link>
    </li>
  );
}
