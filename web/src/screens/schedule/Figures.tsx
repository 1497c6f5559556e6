import { useQuery } from "@tanstack/react-query";
import { type Spread, statsOf } from "@/api/schedule-history";
import type { Schedule, Status } from "@/api/types";
import { STATUSES } from "@/api/types";
import { count, duration } from "@/time/format";
import { RelativeTime } from "@/time/Instant";
import { STATUS_LOOKS, statusColour } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { Icon } from "@/ui/Icon";
import { Sparkline } from "@/ui/Sparkline";
import { ErrorState, Skeleton } from "@/ui/State";

/** Statistics of a schedule: durations, waiting times and outcomes. */
export function Figures({ schedule }: { schedule: Schedule }) {
  const stats = useQuery(statsOf(schedule.schedule_id));
  const found = stats.data;
  return (
    <Card
      title="Figures"
      aside={
        found && (
          <span className="text-ink-faint text-xs">
            since <RelativeTime at={found.since_ts} />
          </span>
        )
      }
    >
      <div className="flex flex-col gap-4 px-4 pb-4">
        {found ? (
          <>
            <div className="grid grid-cols-2 gap-x-6 gap-y-3">
              <SpreadOf title="Duration" spread={found.duration_seconds} none="Nothing has run yet." />
              <SpreadOf
                title="Wait for a worker"
                spread={found.start_delay_seconds}
                none="Nothing has started yet."
              />
            </div>
            <Outcomes counts={found.by_status} />
            {found.last.length > 0 && (
              <div>
                <p className="text-ink-faint mb-1 text-xs">Last {found.last.length}, latest on the right</p>
                <Sparkline recent={found.last} />
              </div>
            )}
          </>
        ) : stats.error ? (
          <ErrorState error={stats.error} onRetry={() => stats.refetch()} />
        ) : (
          <Skeleton className="h-28" />
        )}
      </div>
    </Card>
  );
}

function SpreadOf({ title, spread, none }: { title: string; spread: Spread | null; none: string }) {
  return (
    <div>
      <h3 className="text-ink-faint text-xs">{title}</h3>
      {spread === null ? (
        <p className="text-ink-soft text-sm">{none}</p>
      ) : (
        <dl className="numbers flex flex-wrap gap-x-4 text-sm">
          {(["p50", "p95", "max"] as const).map((name) => (
            <div key={name} className="flex items-baseline gap-1">
              <dt className="text-ink-faint text-xs">{name}</dt>
              <dd className={name === "p50" ? "text-lg font-semibold" : "font-medium"}>
                {duration(spread[name])}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

function Outcomes({ counts }: { counts: Partial<Record<Status, number>> }) {
  const told = STATUSES.filter((status) => (counts[status] ?? 0) > 0);
  const total = told.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  if (total === 0) {
    return null;
  }
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex h-2 gap-px overflow-hidden rounded-full" aria-hidden="true">
        {told.map((status) => (
          <span
            key={status}
            className="min-w-0.5"
            style={{ flexGrow: counts[status] ?? 0, background: statusColour(status) }}
          />
        ))}
      </div>
      <ul className="flex flex-wrap gap-x-3 gap-y-1 text-xs">
        {told.map((status) => (
          <li key={status} className="flex items-center gap-1">
            <span style={{ color: statusColour(status) }}>
              <Icon name={STATUS_LOOKS[status].icon} size={13} />
            </span>
            <span className="text-ink-soft">{status}</span>
            <span className="numbers font-medium">{count(counts[status] ?? 0)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
