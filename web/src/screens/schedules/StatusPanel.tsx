import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { clusterStatus } from "@/api/status";
import { type ClusterStatus, SCHEDULE_STATES } from "@/api/types";
import { Link } from "@/routing/Link";
import { Countdown } from "@/time/Countdown";
import { count } from "@/time/format";
import { RelativeTime } from "@/time/Instant";
import { Badge, StateBadge, StatusBadge } from "@/ui/Badge";
import { ErrorState, Skeleton } from "@/ui/State";

/** Side panel with cluster status: health, leader, counts, next fire, latest failures. */
export function StatusPanel() {
  const status = useQuery(clusterStatus);
  return (
    <aside aria-label="Status" className="border-line bg-surface shadow-low flex flex-col rounded-lg border">
      {status.data ? (
        <Panel status={status.data} />
      ) : status.error ? (
        <ErrorState error={status.error} onRetry={() => status.refetch()} />
      ) : (
        <div className="p-4">
          <Skeleton className="h-72" />
        </div>
      )}
    </aside>
  );
}

function Panel({ status }: { status: ClusterStatus }) {
  const { schedules, executions } = status;
  const next = status.next_fires[0];
  const led = status.leaders.filter((leader) => leader.is_fresh && leader.instance_id !== null);
  const isRunning = led.length > 0 && led.length === status.leaders.length;
  return (
    <>
      <Section title="Scheduler">
        <p className="flex items-center gap-2">
          <Badge tone={isRunning ? "good" : "bad"} icon={isRunning ? "check" : "warning"}>
            {isRunning ? "running" : "no leader"}
          </Badge>
          {status.overdue.count > 0 && (
            <Badge
              tone="warn"
              icon="hourglass"
            >{`${count(status.overdue.count, status.overdue.is_capped)} late`}</Badge>
          )}
        </p>
        <p className="text-ink-soft mt-1.5 truncate text-xs" title={led[0]?.instance_id ?? undefined}>
          {status.leaders.length > 1
            ? `${led.length} of ${status.leaders.length} shards led`
            : led[0]
              ? `Leader ${led[0].instance_id}`
              : "Nothing fires until a scheduler takes over."}
        </p>
      </Section>
      <Section title="Schedules">
        <ul className="flex flex-col gap-1">
          {SCHEDULE_STATES.filter((state) => state === "active" || (schedules.by_state[state] ?? 0) > 0).map(
            (state) => (
              <li key={state}>
                <Link
                  href={`/schedules?state=${state}`}
                  className="hover:bg-hover -mx-1.5 flex items-center rounded px-1.5 py-0.5"
                >
                  <StateBadge state={state} />
                  <span className="numbers ml-auto font-medium">
                    {count(schedules.by_state[state] ?? 0, schedules.is_capped)}
                  </span>
                </Link>
              </li>
            ),
          )}
        </ul>
      </Section>
      <Section title="Executions">
        <dl className="grid grid-cols-[1fr_auto] gap-y-1">
          {(["running", "pending", "retrying"] as const).map((each) => (
            <Figure
              key={each}
              name={each}
              value={count(executions.by_status[each] ?? 0, executions.is_capped)}
            />
          ))}
          <Figure name="failed in 24 h" value={count(executions.ended_badly_24h, executions.is_capped)} />
        </dl>
      </Section>
      <Section title="Next">
        {next ? (
          <Link
            href={`/schedules/${next.schedule_id}`}
            className="hover:bg-hover -mx-1.5 flex items-baseline gap-2 rounded px-1.5 py-0.5"
          >
            <span className="truncate">{next.name}</span>
            <Countdown at={next.next_run_ts} className="ml-auto font-medium" />
          </Link>
        ) : (
          <p className="text-ink-soft">Nothing is due.</p>
        )}
      </Section>
      <Section title="Recent failures">
        {status.recent_failures.length === 0 ? (
          <p className="text-ink-soft">None in the last 24 hours.</p>
        ) : (
          <ul className="flex flex-col gap-1.5">
            {status.recent_failures.slice(0, 3).map((failure) => (
              <li key={failure.execution_id}>
                <Link
                  href={`/executions/${failure.execution_id}`}
                  className="hover:bg-hover -mx-1.5 block rounded px-1.5 py-0.5"
                >
                  <span className="flex items-center gap-2">
                    <span className="truncate">{failure.schedule_name ?? "a deleted schedule"}</span>
                    {failure.ended_ts && (
                      <RelativeTime at={failure.ended_ts} className="text-ink-faint ml-auto text-xs" />
                    )}
                  </span>
                  <span className="mt-0.5 flex items-center gap-2">
                    <StatusBadge status={failure.status} />
                    <span className="text-ink-soft truncate text-xs">{failure.error}</span>
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="border-line border-b px-4 py-3 text-sm last:border-b-0">
      <h2 id={id} className="text-ink-faint mb-1.5 text-xs font-medium">
        {title}
      </h2>
      {children}
    </section>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-ink-soft">{name}</dt>
      <dd className="numbers text-right font-medium">{value}</dd>
    </>
  );
}
