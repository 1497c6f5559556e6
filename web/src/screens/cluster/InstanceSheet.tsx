import { useQuery } from "@tanstack/react-query";
import { allInstances } from "@/api/cluster";
import type { Instance } from "@/api/types";
import { Link } from "@/routing/Link";
import { duration } from "@/time/format";
import { Instant, RelativeTime } from "@/time/Instant";
import { CopyButton } from "@/ui/Copy";
import { Sheet } from "@/ui/Dialog";
import { FactList } from "@/ui/FactList";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { Drain } from "./Drain";
import { isWorker } from "./facts";
import { Load } from "./Instances";
import { Heartbeat, Leads, Names, Roles, Skew } from "./parts";

/** Panel with everything that an instance reported about itself. */
export function InstanceSheet({ id, onClose }: { id: string; onClose: () => void }) {
  const found = useQuery(allInstances);
  const instance = found.data?.items.find((each) => each.instance_id === id);
  return (
    <Sheet
      title={instance ? `${instance.hostname} · ${instance.pid}` : id}
      description={instance ? instance.roles.join(", ") : undefined}
      onClose={onClose}
    >
      {instance ? (
        <Body instance={instance} />
      ) : found.data ? (
        <EmptyState icon="question" title="It is not there any more">
          It has stopped, or was not heard of for minutes.
        </EmptyState>
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}

function Body({ instance }: { instance: Instance }) {
  return (
    <div className="flex flex-col gap-6">
      {instance.is_live && <Drain instance={instance} />}
      <FactList
        facts={[
          ["State", <Heartbeat key="state" instance={instance} />],
          [
            "Id",
            <span key="id" className="flex items-center gap-1 font-mono text-xs">
              {instance.instance_id}
              <CopyButton text={instance.instance_id} what="the id" className="-my-2" />
            </span>,
          ],
          ["Roles", <Roles key="roles" roles={instance.roles} />],
          ["Leads", <Leads key="leads" shards={instance.leads} />],
          [
            "Leader since",
            instance.leader_since ? <Instant key="since" at={instance.leader_since} /> : "does not lead",
          ],
          ["Version", instance.version],
          [
            "Started",
            <span key="started">
              <Instant at={instance.started_ts} />, <RelativeTime at={instance.started_ts} />
            </span>,
          ],
          [
            "Last heartbeat",
            <span key="heard">
              <Instant at={instance.last_heartbeat} />, {duration(instance.heartbeat_age_seconds)} before it
              was read
            </span>,
          ],
          [
            "Clock",
            <span key="clock" className="flex flex-wrap items-center gap-2">
              <Skew offset={instance.clock_offset_seconds} />
              <span className="text-ink-soft text-xs">
                Due times follow the database's clock, not this one.
              </span>
            </span>,
          ],
        ]}
      />
      {isWorker(instance) && (
        <section aria-labelledby="work" className="flex flex-col gap-3">
          <h3 id="work" className="font-semibold">
            As a worker
          </h3>
          <FactList
            facts={[
              ["Slots in use", <Load key="load" instance={instance} />],
              [
                "Queues",
                instance.queues === null ? "all" : <Names key="queues" names={instance.queues} most={100} />,
              ],
            ]}
          />
          <h4 className="text-ink-soft text-sm">Task functions that it knows</h4>
          <ul className="grid gap-x-4 sm:grid-cols-2">
            {(instance.known_tasks ?? []).map((task) => (
              <li key={task} className="min-w-0">
                <Link
                  href={`/cluster/tasks/${encodeURIComponent(task)}`}
                  className="text-accent block truncate rounded py-1 font-mono text-xs hover:underline"
                >
                  {task}
                </Link>
              </li>
            ))}
            {instance.known_tasks?.length === 0 && (
              <li className="text-ink-soft text-sm">None: it carries out HTTP calls and events alone.</li>
            )}
          </ul>
        </section>
      )}
    </div>
  );
}
