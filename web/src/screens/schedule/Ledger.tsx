import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { executionsBetween, type Fire, ledgerOf } from "@/api/schedule-history";
import type { Schedule } from "@/api/types";
import { Link } from "@/routing/Link";
import { zoneOf } from "@/screens/schedules/words";
import { duration } from "@/time/format";
import { Instant } from "@/time/Instant";
import { Badge, StatusBadge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { isLate, lateBy, missedWords, reasonWords } from "./lateness";

const idOf = (fire: Fire) => `${fire.fire_ts} ${fire.execution_id}`;

/** What happened at each fire time: fired, fired late, or skipped and why. */
export function Ledger({ schedule }: { schedule: Schedule }) {
  const ledger = useInfiniteQuery(ledgerOf(schedule.schedule_id));
  const fresh = useMemo(() => ledger.data?.pages.flat(), [ledger.data]);
  const steady = useSteadyRows(fresh, idOf, schedule.schedule_id);
  if (ledger.isPending) {
    return <Skeleton className="h-64" />;
  }
  if (ledger.error && steady.rows.length === 0) {
    return <ErrorState error={ledger.error} onRetry={() => ledger.refetch()} />;
  }
  if (steady.rows.length === 0) {
    return (
      <EmptyState icon="clock" title="No time of it has come yet">
        Each of its times is listed here once it was decided.
      </EmptyState>
    );
  }
  return (
    <div className="border-line bg-surface overflow-hidden rounded-lg border">
      <NewsBar steady={steady} />
      <ol className="divide-line divide-y">
        {pagesOf(steady.rows).map((rows) => (
          <Rows key={rows[0] && idOf(rows[0])} schedule={schedule} fires={rows} />
        ))}
      </ol>
      {ledger.hasNextPage && (
        <div className="border-line flex justify-center border-t p-2">
          <Button look="quiet" isBusy={ledger.isFetchingNextPage} onClick={() => ledger.fetchNextPage()}>
            Show earlier ones
          </Button>
        </div>
      )}
    </div>
  );
}

const PAGE = 100;

function pagesOf(rows: readonly Fire[]): readonly (readonly Fire[])[] {
  return Array.from({ length: Math.ceil(rows.length / PAGE) }, (_, page) =>
    rows.slice(page * PAGE, (page + 1) * PAGE),
  );
}

/** One page of fire times. Loads their executions to show how late each was. */
function Rows({ schedule, fires }: { schedule: Schedule; fires: readonly Fire[] }) {
  const latest = fires[0]?.fire_ts ?? "";
  const earliest = fires.at(-1)?.fire_ts ?? "";
  const executions = useQuery({
    ...executionsBetween(schedule.schedule_id, earliest, latest),
    staleTime: 30_000,
  });
  const known = new Map(executions.data?.items.map((each) => [each.execution_id, each]));
  return fires.map((fire) => (
    <Row
      key={idOf(fire)}
      fire={fire}
      zone={zoneOf(schedule.trigger)}
      late={lateBy(fire, known.get(fire.execution_id ?? ""))}
      jitter={schedule.jitter_seconds}
    />
  ));
}

interface RowProps {
  fire: Fire;
  zone: string | null;
  late: number | null;
  jitter: number;
}

function Row({ fire, zone, late, jitter }: RowProps) {
  const wasLate = isLate(late, jitter);
  const missed = missedWords(fire.missed_count);
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-3 py-1.5 text-sm">
      <Instant at={fire.fire_ts} zone={zone} className="min-w-18 shrink-0 sm:w-32" />
      {fire.state === "skipped" ? (
        <Badge tone="calm" icon="skip">
          skipped
        </Badge>
      ) : (
        <Badge tone={wasLate ? "warn" : "good"} icon={wasLate ? "hourglass" : "check"}>
          {wasLate ? "late" : "fired"}
        </Badge>
      )}
      <span className="text-ink-soft min-w-0 text-xs">
        {fire.state === "skipped"
          ? reasonWords(fire.reason)
          : late !== null && `${wasLate ? "by" : "after"} ${duration(late / 1000)}`}
        {missed && `${fire.state === "skipped" || late !== null ? "; " : ""}${missed}`}
      </span>
      {fire.execution_id && fire.state !== "skipped" && (
        <Link
          href={`/executions/${fire.execution_id}`}
          className="ml-auto flex h-6 items-center rounded-full"
        >
          {fire.status ? <StatusBadge status={fire.status} /> : "Show"}
        </Link>
      )}
    </li>
  );
}
