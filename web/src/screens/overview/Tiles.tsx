import { useQuery } from "@tanstack/react-query";
import { dueNextHour } from "@/api/status";
import { BAD_STATUSES, type ClusterStatus } from "@/api/types";
import { Link } from "@/routing/Link";
import { presently } from "@/time/clock";
import { count, relative } from "@/time/format";
import { Icon, type IconName } from "@/ui/Icon";

interface TileProps {
  /** The page that lists what the tile counts. */
  href: string;
  icon: IconName;
  name: string;
  value: string | null;
  note: string;
  /** Highlights a value that needs attention. */
  tone?: "bad" | "warn" | "busy" | undefined;
}

const TONES = { bad: "text-bad", warn: "text-warn", busy: "text-busy" } as const;

function Tile({ href, icon, name, value, note, tone }: TileProps) {
  return (
    <Link
      href={href}
      className="border-line bg-surface shadow-low hover:border-line-strong group flex min-w-0 flex-col rounded-lg border px-4 py-3 transition-colors"
    >
      <span className="text-ink-soft flex items-center gap-1.5 text-xs font-medium">
        <Icon name={icon} size={14} className={tone ? TONES[tone] : "text-ink-faint"} />
        {name}
        <Icon
          name="right"
          size={12}
          className="text-ink-faint ml-auto opacity-0 transition-opacity group-hover:opacity-100"
        />
      </span>
      <span className={`numbers mt-0.5 text-2xl font-semibold tracking-tight ${tone ? TONES[tone] : ""}`}>
        {value ?? "–"}
      </span>
      <span className="text-ink-faint truncate text-xs">{note}</span>
    </Link>
  );
}

const DAY_MS = 86_400_000;

/** Figures that show whether anything needs attention. Each links to the list of what it counts. */
export function Tiles({ status }: { status: ClusterStatus }) {
  const due = useQuery(dueNextHour);
  const { executions, overdue, schedules } = status;
  const running = executions.by_status.running ?? 0;
  const waiting = (executions.by_status.pending ?? 0) + (executions.by_status.retrying ?? 0);
  const paused = schedules.by_state.paused ?? 0;
  return (
    <div className="grid grid-cols-2 gap-3 *:first:col-span-2 md:grid-cols-5 md:*:first:col-span-1">
      <Tile
        href="/schedules?state=active&sort=next_run_ts"
        icon="clock"
        name="Due next hour"
        value={due.data ? count(due.data.count, due.data.isPartial) : null}
        note={due.data ? `times of ${count(due.data.schedules)} schedules` : "counting"}
      />
      <Tile
        href="/executions?status=running"
        icon="play"
        name="Running"
        value={count(running, executions.is_capped)}
        note={waiting === 0 ? "none waiting" : `${count(waiting, executions.is_capped)} waiting`}
        tone={running > 0 ? "busy" : undefined}
      />
      <Tile
        href={failedAddress()}
        icon="crossCircle"
        name="Failed, 24 h"
        value={count(executions.ended_badly_24h, executions.is_capped)}
        note="failed, timed out, unknown"
        tone={executions.ended_badly_24h > 0 ? "bad" : undefined}
      />
      <Tile
        href="/schedules?state=active&sort=next_run_ts"
        icon="hourglass"
        name="Late"
        value={count(overdue.count, overdue.is_capped)}
        note={
          overdue.oldest
            ? `oldest due ${relative(new Date(overdue.oldest.next_run_ts), new Date(status.now))}`
            : "all due times were acted on"
        }
        tone={overdue.count > 0 ? "warn" : undefined}
      />
      <Tile
        href="/schedules?state=paused"
        icon="pause"
        name="Paused"
        value={count(paused, schedules.is_capped)}
        note={`of ${count(sum(Object.values(schedules.by_state)), schedules.is_capped)} schedules`}
        tone={paused > 0 ? "warn" : undefined}
      />
    </div>
  );
}

function failedAddress(): string {
  const since = new Date(Math.floor((presently().getTime() - DAY_MS) / 60_000) * 60_000);
  const search = new URLSearchParams(BAD_STATUSES.map((status) => ["status", status]));
  search.append("fire_from", since.toISOString());
  return `/executions?${search}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
