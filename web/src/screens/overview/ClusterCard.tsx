import { useQuery } from "@tanstack/react-query";
import { instances } from "@/api/status";
import type { ClusterStatus, Instance } from "@/api/types";
import { duration } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { Icon } from "@/ui/Icon";
import { Skeleton } from "@/ui/State";
import { MoreLink } from "./NextFiresCard";

/** The leaders and the instances. */
export function ClusterCard({ status }: { status: ClusterStatus }) {
  const found = useQuery(instances);
  const led = status.leaders.filter((leader) => leader.is_fresh && leader.instance_id !== null);
  return (
    <Card title="Leader and instances" aside={<MoreLink href="/cluster" />}>
      <div className="flex flex-col gap-2 px-4 pb-3">
        {led.length === status.leaders.length && led.length > 0 ? (
          <p className="flex items-center gap-2 text-sm">
            <Badge tone="good" icon="crown">
              led
            </Badge>
            {status.leaders.length === 1
              ? `by ${led[0]?.instance_id}, epoch ${led[0]?.epoch}`
              : `${led.length} of ${status.leaders.length} shards`}
          </p>
        ) : (
          <p className="flex items-center gap-2 text-sm">
            <Badge tone="bad" icon="warning">
              no leader
            </Badge>
            {status.leaders.length <= 1
              ? "Nothing fires until a scheduler takes over."
              : `${led.length} of ${status.leaders.length} shards are led.`}
          </p>
        )}
        {found.data === undefined ? (
          <Skeleton className="h-16" />
        ) : (
          <ul className="flex flex-col gap-2">
            {found.data.items.slice(0, 6).map((instance) => (
              <InstanceLine key={instance.instance_id} instance={instance} />
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

function InstanceLine({ instance }: { instance: Instance }) {
  const share = instance.capacity > 0 ? Math.min(1, instance.load / instance.capacity) : 0;
  return (
    <li className="border-line bg-canvas rounded-md border px-3 py-2 text-sm">
      <div className="flex items-center gap-2">
        <span className="truncate font-medium" title={instance.instance_id}>
          {instance.hostname}
          <span className="text-ink-faint font-normal"> · {instance.pid}</span>
        </span>
        <span className="ml-auto flex items-center gap-1.5">
          {instance.leads.length > 0 && <Icon name="crown" size={14} className="text-brass" />}
          <Badge tone={instance.is_live ? "good" : "bad"} icon={instance.is_live ? "check" : "warning"}>
            {instance.is_live ? "live" : "silent"}
          </Badge>
        </span>
      </div>
      <div className="text-ink-soft mt-0.5 flex flex-wrap gap-x-3 text-xs">
        <span>{instance.roles.join(", ")}</span>
        <span className="numbers">seen {duration(instance.heartbeat_age_seconds)} ago</span>
        <span>v{instance.version}</span>
      </div>
      {instance.capacity > 0 && instance.roles.includes("worker") && (
        <div className="mt-1.5 flex items-center gap-2">
          <div className="bg-line h-1 grow overflow-hidden rounded-full">
            <div className="bg-accent h-full rounded-full" style={{ width: `${share * 100}%` }} />
          </div>
          <span className="numbers text-ink-soft text-xs">
            {instance.load} of {instance.capacity} running
          </span>
        </div>
      )}
    </li>
  );
}
