// Components that the tabs of the cluster screen share.

import type { Instance } from "@/api/types";
import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { duration } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Icon } from "@/ui/Icon";
import { isSkewed, skewWords } from "./facts";

export function Panel({ children }: { children: React.ReactNode }) {
  return <div className="border-line bg-surface shadow-low relative rounded-lg border">{children}</div>;
}

/** The name of an instance, as a link to its panel, above its id. */
export function InstanceName({ instance, tab }: { instance: Instance; tab: "instances" | "workers" }) {
  const { search } = useLocation();
  return (
    <div className="min-w-0">
      <Link
        href={`/cluster/${tab}/${encodeURIComponent(instance.instance_id)}${search}`}
        className="block truncate rounded font-medium hover:underline"
      >
        {instance.hostname}
        <span className="text-ink-soft font-normal"> · {instance.pid}</span>
      </Link>
      <code className="text-ink-faint block truncate font-mono text-xs" title={instance.instance_id}>
        {instance.instance_id}
      </code>
    </div>
  );
}

/** Whether an instance is live, and its last heartbeat. */
export function Heartbeat({ instance }: { instance: Instance }) {
  return (
    <div className="flex flex-col items-start gap-0.5">
      {instance.is_live && instance.is_draining ? (
        <Badge tone="warn" icon="pause">
          draining
        </Badge>
      ) : (
        <Badge tone={instance.is_live ? "good" : "bad"} icon={instance.is_live ? "check" : "warning"}>
          {instance.is_live ? "live" : "silent"}
        </Badge>
      )}
      <span className="numbers text-ink-soft text-xs whitespace-nowrap">
        heard {duration(instance.heartbeat_age_seconds)} ago
      </span>
    </div>
  );
}

export function Skew({ offset }: { offset: number | null }) {
  return isSkewed(offset) ? (
    <Badge tone="warn" icon="warning">
      {skewWords(offset)}
    </Badge>
  ) : (
    <span className="numbers text-ink-soft text-xs whitespace-nowrap">{skewWords(offset)}</span>
  );
}

export function Roles({ roles }: { roles: readonly string[] }) {
  return (
    <ul className="flex flex-wrap gap-1">
      {roles.map((role) => (
        <li key={role} className="bg-calm-soft text-calm rounded px-1.5 text-xs leading-5">
          {role}
        </li>
      ))}
    </ul>
  );
}

/** The shards that an instance leads. */
export function Leads({ shards }: { shards: readonly number[] }) {
  if (shards.length === 0) {
    return <span className="text-ink-faint text-xs">none</span>;
  }
  return (
    <span className="inline-flex items-center gap-1.5 text-xs font-medium">
      <Icon name="crown" size={14} className="text-brass" />
      <span className="numbers">
        {shards.length === 1 ? "shard" : "shards"} {shards.join(", ")}
      </span>
    </span>
  );
}

/** Names as chips. Names beyond `most` are only counted. */
export function Names({ names, most = 4 }: { names: readonly string[]; most?: number }) {
  return (
    <ul className="flex min-w-0 flex-wrap gap-1">
      {names.slice(0, most).map((name) => (
        <li
          key={name}
          title={name}
          className="bg-sunken border-line max-w-44 truncate rounded border px-1.5 font-mono text-xs leading-5"
        >
          {name}
        </li>
      ))}
      {names.length > most && (
        <li className="text-ink-soft px-1 text-xs leading-5">and {names.length - most} more</li>
      )}
    </ul>
  );
}
