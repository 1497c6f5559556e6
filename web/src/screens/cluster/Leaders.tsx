import { useQuery } from "@tanstack/react-query";
import type { Leader, LeaseProviderStatus, TransportStatus } from "@/api/cluster";
import { clusterStatus } from "@/api/status";
import { Link } from "@/routing/Link";
import { duration } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { FactList } from "@/ui/FactList";
import { EmptyState } from "@/ui/State";
import { columnsOf, DataTable } from "@/ui/Table";
import { isLed } from "./facts";
import { Panel } from "./parts";

const column = columnsOf<Leader>();
const COLUMNS = column.columns([
  column.display({
    id: "shard",
    header: "Shard",
    meta: { className: "w-24" },
    cell: ({ row }) => <span className="numbers font-medium">{row.original.shard}</span>,
  }),
  column.display({
    id: "state",
    header: "State",
    meta: { className: "w-40" },
    cell: ({ row }) => <State leader={row.original} />,
  }),
  column.display({
    id: "leader",
    header: "Leader",
    cell: ({ row }) => <Who leader={row.original} />,
  }),
  column.display({
    id: "epoch",
    header: "Epoch",
    meta: { className: "w-28" },
    cell: ({ row }) => <span className="numbers">{row.original.epoch}</span>,
  }),
  column.display({
    id: "heartbeat",
    header: "Lease renewed",
    meta: { className: "w-40" },
    cell: ({ row }) => <Renewed leader={row.original} />,
  }),
]);

const idOf = (row: Leader) => String(row.shard);

/** The leader of each shard and its lease. */
export function Leaders() {
  const status = useQuery({ ...clusterStatus, refetchInterval: 3000 });
  return (
    <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,1fr)_20rem]">
      <Panel>
        <DataTable
          label="Leaders"
          columns={COLUMNS}
          rows={status.data?.leaders ?? []}
          rowId={idOf}
          rowName={(row) => `shard ${row.shard}`}
          isLoading={status.isPending}
          error={status.error}
          onRetry={() => status.refetch()}
          card={(row) => <LeaderCard leader={row} />}
          empty={
            <EmptyState icon="crown" title="No shard has had a leader yet">
              Start a scheduler: <code>foliot scheduler</code>, or <code>foliot up</code>.
            </EmptyState>
          }
        />
      </Panel>
      <Card title="How it is settled">
        <div className="px-4 pt-1 pb-4">
          <FactList
            facts={[
              ["Lease provider", <Providers key="providers" providers={status.data?.lease_providers} />],
              ["Transport", <Transports key="transports" transports={status.data?.transports} />],
              ["Shards", String(status.data?.leaders.length ?? "…")],
            ]}
          />
          <p className="text-ink-soft mt-3 text-xs">
            Each shard is led by one scheduler at a time. The epoch grows with every change of leader; what an
            older leader still writes is refused.
          </p>
        </div>
      </Card>
    </div>
  );
}

/** The lease providers, and whether those other than the database answer. */
function Providers({ providers }: { providers: readonly LeaseProviderStatus[] | undefined }) {
  if (providers === undefined) return "…";
  if (providers.length === 0) return "database";
  return (
    <ul className="flex flex-col gap-1">
      {providers.map((each) => (
        <li key={`${each.kind} ${each.address}`} className="flex flex-wrap items-center gap-1.5">
          <span title={each.address}>database and {each.kind}</span>
          <Answering away={each.away_count} of={each.instance_count} />
        </li>
      ))}
    </ul>
  );
}

function Answering({ away, of }: { away: number; of: number }) {
  return away > 0 ? (
    <Badge tone="bad" icon="warning">
      {`away for ${away} of ${of}`}
    </Badge>
  ) : (
    <Badge tone="good" icon="check">
      up
    </Badge>
  );
}

/** The transports that carry executions to workers, and whether they answer. */
function Transports({ transports }: { transports: readonly TransportStatus[] | undefined }) {
  if (transports === undefined) return "…";
  if (transports.length === 0) return "database";
  return (
    <ul className="flex flex-col gap-1">
      {transports.map((each) => (
        <li key={`${each.priority} ${each.address}`} className="flex flex-wrap items-center gap-1.5">
          <span>
            {each.priority}: {each.kind}
          </span>
          <Answering away={each.away_count} of={each.instance_count} />
        </li>
      ))}
    </ul>
  );
}

function State({ leader }: { leader: Leader }) {
  return isLed(leader) ? (
    <Badge tone="good" icon="crown">
      led
    </Badge>
  ) : (
    <Badge tone="bad" icon="warning">
      {leader.instance_id === null ? "no leader" : "lease ran out"}
    </Badge>
  );
}

function Who({ leader }: { leader: Leader }) {
  if (leader.instance_id === null) {
    return <span className="text-ink-soft text-sm">nobody: its schedules do not fire</span>;
  }
  return (
    <Link
      href={`/cluster/instances/${encodeURIComponent(leader.instance_id)}`}
      className="block truncate rounded font-mono text-xs hover:underline"
    >
      {leader.instance_id}
    </Link>
  );
}

function Renewed({ leader }: { leader: Leader }) {
  return (
    <span className="numbers text-ink-soft text-xs">
      {leader.instance_id === null ? "never" : `${duration(Math.max(0, leader.heartbeat_age_seconds))} ago`}
    </span>
  );
}

function LeaderCard({ leader }: { leader: Leader }) {
  return (
    <div className="flex flex-col gap-1.5 text-sm">
      <div className="flex items-center gap-2">
        <span className="font-medium">Shard {leader.shard}</span>
        <State leader={leader} />
        <span className="text-ink-soft ml-auto text-xs">epoch {leader.epoch}</span>
      </div>
      <Who leader={leader} />
      <Renewed leader={leader} />
    </div>
  );
}
