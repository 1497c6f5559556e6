import { useQuery } from "@tanstack/react-query";
import { execution } from "@/api/executions";
import { isBad, type ListedSchedule } from "@/api/types";
import { Link } from "@/routing/Link";
import { RelativeTime } from "@/time/Instant";
import { StatusBadge } from "@/ui/Badge";
import { zoneOf } from "./words";

/** Outcome of the last run, with the reason if it failed. */
export function LastResult({ schedule }: { schedule: ListedSchedule }) {
  const { last_status: status, last_run_ts: at, last_execution_id: id } = schedule;
  if (!status || !at || !id) {
    return <span className="text-ink-faint text-xs">not yet</span>;
  }
  return (
    <div className="flex min-w-0 flex-col gap-0.5">
      <span className="flex items-center gap-2">
        <Link href={`/executions/${id}`} className="flex h-6 items-center rounded-full">
          <StatusBadge status={status} />
        </Link>
        <RelativeTime at={at} zone={zoneOf(schedule.trigger)} className="text-ink-soft text-xs" />
      </span>
      {isBad(status) && <Reason id={id} />}
    </div>
  );
}

function Reason({ id }: { id: string }) {
  const { data } = useQuery({ ...execution(id), staleTime: 60_000 });
  const words = data?.error ?? data?.reason;
  const first = words?.split("\n")[0] ?? "";
  return (
    <span className="text-ink-soft block truncate text-xs" title={words ?? undefined}>
      {first}
    </span>
  );
}
