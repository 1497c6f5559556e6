import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { allInstances } from "@/api/cluster";
import type { Instance } from "@/api/types";
import { navigate, useLocation } from "@/routing/location";
import { anyOf, text, useSearch } from "@/routing/search";
import { RelativeTime } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { Facet, FilterBar, SearchBox, words } from "@/ui/Filters";
import { Meter } from "@/ui/Meter";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { isWorker } from "./facts";
import { Heartbeat, InstanceName, Leads, Panel, Roles, Skew } from "./parts";

const ROLES = ["api", "scheduler", "worker", "relay"] as const;
const STATES = ["live", "silent"] as const;
const shape = { q: text(), role: anyOf(ROLES), state: anyOf(STATES) };
const UNFILTERED = { q: "", role: [], state: [] };

const column = columnsOf<Instance>();
const COLUMNS = column.columns([
  column.display({
    id: "name",
    header: "Instance",
    cell: ({ row }) => <InstanceName instance={row.original} tab="instances" />,
  }),
  column.display({
    id: "state",
    header: "State",
    meta: { className: "w-32" },
    cell: ({ row }) => <Heartbeat instance={row.original} />,
  }),
  column.display({
    id: "roles",
    header: "Roles",
    meta: { className: "w-48" },
    cell: ({ row }) => <Roles roles={row.original.roles} />,
  }),
  column.display({
    id: "leads",
    header: "Leads",
    meta: { className: "w-28" },
    cell: ({ row }) => <Leads shards={row.original.leads} />,
  }),
  column.display({
    id: "clock",
    header: "Clock",
    meta: { className: "w-32" },
    cell: ({ row }) => <Skew offset={row.original.clock_offset_seconds} />,
  }),
  column.display({
    id: "load",
    header: "Load",
    meta: { className: "w-40" },
    cell: ({ row }) => <Load instance={row.original} />,
  }),
  column.display({
    id: "version",
    header: "Version, up since",
    meta: { className: "w-34" },
    cell: ({ row }) => <Running instance={row.original} />,
  }),
]);

const idOf = (row: Instance) => row.instance_id;
const nameOf = (row: Instance) => row.hostname;

/** List of the instances that sent a heartbeat within the last minutes. */
export function Instances({ openId }: { openId: string | null }) {
  const [search, setSearch] = useSearch(shape);
  const { search: address } = useLocation();
  const found = useQuery(allInstances);
  const fresh = useMemo(
    () =>
      found.data?.items.filter(
        (each) =>
          `${each.hostname} ${each.instance_id}`.toLowerCase().includes(search.q.toLowerCase()) &&
          (search.role.length === 0 || search.role.some((role) => each.roles.includes(role))) &&
          (search.state.length === 0 || search.state.includes(each.is_live ? "live" : "silent")),
      ),
    [found.data, search],
  );
  const steady = useSteadyRows(fresh, idOf, JSON.stringify(search));
  const find = useCallback((q: string) => setSearch({ q }, { replace: true }), [setSearch]);
  const isFiltered = search.q !== "" || search.role.length > 0 || search.state.length > 0;
  return (
    <>
      <FilterBar
        label="Filter instances"
        search={<SearchBox label="Machine or id" value={search.q} onChange={find} />}
        onClear={isFiltered ? () => setSearch(UNFILTERED) : null}
      >
        <Facet
          label="Role"
          choices={words(ROLES)}
          chosen={search.role}
          onChange={(role) => setSearch({ role })}
        />
        <Facet
          label="State"
          choices={words(STATES)}
          chosen={search.state}
          onChange={(state) => setSearch({ state })}
        />
      </FilterBar>
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Instances"
          columns={COLUMNS}
          rows={steady.rows}
          gone={steady.gone}
          rowId={idOf}
          rowName={nameOf}
          isLoading={found.isPending}
          error={found.error}
          onRetry={() => found.refetch()}
          onOpen={(row) => navigate(`/cluster/instances/${encodeURIComponent(row.instance_id)}${address}`)}
          openId={openId}
          card={(row) => <InstanceCard instance={row} />}
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="No instance matches">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="cluster" title="No instance has told of itself lately" />
            )
          }
        />
        {found.data && found.data.next_page_token !== "" && (
          <p className="border-line text-ink-soft border-t px-4 py-2 text-center text-xs">
            The first {found.data.items.length} are shown; all of them by <code>foliot instance list</code>.
          </p>
        )}
      </Panel>
    </>
  );
}

export function Load({ instance }: { instance: Instance }) {
  if (!isWorker(instance)) {
    return <span className="text-ink-faint text-xs">no worker</span>;
  }
  return (
    <Meter
      label={`Slots in use on ${instance.hostname}`}
      value={instance.load}
      most={instance.capacity}
      words={`${instance.load} of ${instance.capacity}`}
    />
  );
}

function Running({ instance }: { instance: Instance }) {
  return (
    <div className="flex min-w-0 flex-col text-xs">
      <span className="truncate">{instance.version}</span>
      <RelativeTime at={instance.started_ts} className="text-ink-soft" />
    </div>
  );
}

function InstanceCard({ instance }: { instance: Instance }) {
  return (
    <div className="flex flex-col gap-2 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <InstanceName instance={instance} tab="instances" />
        </div>
        <Heartbeat instance={instance} />
      </div>
      <Roles roles={instance.roles} />
      {isWorker(instance) && <Load instance={instance} />}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        {instance.leads.length > 0 && <Leads shards={instance.leads} />}
        <span className="text-ink-soft flex items-center gap-1.5 text-xs">
          Clock <Skew offset={instance.clock_offset_seconds} />
        </span>
        <span className="text-ink-soft text-xs">
          {instance.version}, up <RelativeTime at={instance.started_ts} />
        </span>
      </div>
    </div>
  );
}
