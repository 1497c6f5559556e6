import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { allInstances, allQueues } from "@/api/cluster";
import { clusterStatus } from "@/api/status";
import { Link } from "@/routing/Link";
import { useNow } from "@/time/clock";
import { count, span } from "@/time/format";
import { Icon, type IconName } from "@/ui/Icon";
import { Meter } from "@/ui/Meter";
import { Skeleton } from "@/ui/State";
import { backlogOf, isLed, standingOf } from "./facts";

/** Tiles for leaders, instances, worker slots and waiting work. Each opens its tab below. */
export function Tiles() {
  const status = useQuery(clusterStatus);
  const instances = useQuery(allInstances);
  const queues = useQuery(allQueues);
  const now = useNow();
  const leaders = status.data?.leaders;
  const led = leaders?.filter(isLed).length ?? 0;
  const isAllLed = leaders !== undefined && leaders.length > 0 && led === leaders.length;
  const standing = instances.data && standingOf(instances.data.items);
  const backlog = queues.data && backlogOf(queues.data.items);
  return (
    <div className="mb-4 grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Tile href="/cluster/leaders" icon="crown" name="Leadership" tone={leaders && !isAllLed ? "bad" : null}>
        {leaders && (
          <>
            <Value>{isAllLed ? "Led" : led === 0 ? "No leader" : `${led} of ${leaders.length} led`}</Value>
            <Note>
              {!isAllLed
                ? "What is not led does not fire"
                : leaders.length === 1
                  ? `epoch ${leaders[0]?.epoch}`
                  : `${leaders.length} shards`}
            </Note>
          </>
        )}
      </Tile>
      <Tile
        href="/cluster"
        icon="cluster"
        name="Instances"
        tone={standing && standing.silent > 0 ? "warn" : null}
      >
        {standing && (
          <>
            <Value>{standing.live} live</Value>
            <Note>
              {[
                standing.silent > 0 ? `${standing.silent} silent` : "",
                standing.skewed > 0 ? `${standing.skewed} with a wrong clock` : "",
                standing.versions.length > 1
                  ? `${standing.versions.length} versions`
                  : `version ${standing.versions[0]?.[0] ?? "unknown"}`,
              ]
                .filter(Boolean)
                .join(", ")}
            </Note>
          </>
        )}
      </Tile>
      <Tile
        href="/cluster/workers"
        icon="executions"
        name="Slots"
        tone={standing && standing.workers === 0 ? "bad" : null}
      >
        {standing && (
          <>
            <Value>
              {count(standing.busy)} of {count(standing.slots)}
            </Value>
            {standing.workers === 0 ? (
              <Note>No worker is live: nothing runs</Note>
            ) : (
              <Meter
                label="Slots in use"
                value={standing.busy}
                most={standing.slots}
                words={standing.workers === 1 ? "1 worker" : `${standing.workers} workers`}
              />
            )}
          </>
        )}
      </Tile>
      <Tile
        href="/cluster/queues"
        icon="hourglass"
        name="Waiting"
        tone={backlog && backlog.late > 0 ? "bad" : backlog && backlog.paused > 0 ? "warn" : null}
      >
        {backlog && (
          <>
            <Value>{count(backlog.waiting, backlog.isCapped)}</Value>
            <Note>
              {[
                backlog.late > 0 ? `${count(backlog.late)} past their SLA` : "",
                backlog.paused > 0 ? `${backlog.paused} paused` : "",
                backlog.oldest ? `oldest ${span(now.getTime() - Date.parse(backlog.oldest))}` : "",
              ]
                .filter(Boolean)
                .join(", ") || "nothing waits for a worker"}
            </Note>
          </>
        )}
      </Tile>
    </div>
  );
}

const TONES = { bad: "text-bad", warn: "text-warn" } as const;

interface TileProps {
  href: string;
  icon: IconName;
  name: string;
  tone: "bad" | "warn" | null | undefined;
  children: ReactNode;
}

function Tile({ href, icon, name, tone, children }: TileProps) {
  return (
    <Link
      href={href}
      className="border-line bg-surface shadow-low hover:border-line-strong flex min-w-0 flex-col rounded-lg border px-4 py-3 transition-colors"
    >
      <span
        className={`flex items-center gap-1.5 text-xs font-medium ${tone ? TONES[tone] : "text-ink-soft"}`}
      >
        <Icon name={tone ? "warning" : icon} size={14} className={tone ? "" : "text-ink-faint"} />
        {name}
      </span>
      {children || <Skeleton className="mt-2 h-10" />}
    </Link>
  );
}

function Value({ children }: { children: ReactNode }) {
  return <span className="numbers truncate text-xl font-semibold tracking-tight">{children}</span>;
}

function Note({ children }: { children: ReactNode }) {
  return <span className="text-ink-soft truncate text-xs">{children}</span>;
}
