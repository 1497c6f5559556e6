import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { allInstances } from "@/api/cluster";
import type { Instance } from "@/api/types";
import { Link } from "@/routing/Link";
import { navigate, useLocation } from "@/routing/location";
import { texts, useSearch } from "@/routing/search";
import { Button } from "@/ui/Button";
import { CodeBlock } from "@/ui/Code";
import { FilterChip } from "@/ui/Filters";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { isWorker } from "./facts";
import { Load } from "./Instances";
import { Heartbeat, InstanceName, Names, Panel } from "./parts";

/** Filters: workers that serve a queue, workers that know a task. Links from the other tabs set them. */
const shape = { queue: texts(), task: texts() };
const UNFILTERED = { queue: [], task: [] };

const column = columnsOf<Instance>();
const COLUMNS = column.columns([
  column.display({
    id: "name",
    header: "Worker",
    meta: { className: "w-56" },
    cell: ({ row }) => <InstanceName instance={row.original} tab="workers" />,
  }),
  column.display({
    id: "state",
    header: "State",
    meta: { className: "w-32" },
    cell: ({ row }) => <Heartbeat instance={row.original} />,
  }),
  column.display({
    id: "slots",
    header: "Slots in use",
    meta: { className: "w-48" },
    cell: ({ row }) => <Load instance={row.original} />,
  }),
  column.display({
    id: "queues",
    header: "Queues",
    meta: { className: "w-48" },
    cell: ({ row }) => <Served queues={row.original.queues} />,
  }),
  column.display({
    id: "tasks",
    header: "Tasks known",
    cell: ({ row }) => <Known tasks={row.original.known_tasks ?? []} />,
  }),
]);

const idOf = (row: Instance) => row.instance_id;
const nameOf = (row: Instance) => row.hostname;

export function Workers({ openId }: { openId: string | null }) {
  const [search, setSearch] = useSearch(shape);
  const { search: address } = useLocation();
  const found = useQuery(allInstances);
  const fresh = useMemo(
    () =>
      found.data?.items.filter(
        (each) =>
          isWorker(each) &&
          search.queue.every((queue) => each.queues === null || each.queues.includes(queue)) &&
          search.task.every((task) => each.known_tasks?.includes(task) ?? false),
      ),
    [found.data, search],
  );
  const steady = useSteadyRows(fresh, idOf, JSON.stringify(search));
  const isFiltered = search.queue.length > 0 || search.task.length > 0;
  return (
    <>
      {isFiltered && (
        <div className="mb-3 flex flex-wrap gap-1.5">
          {(["queue", "task"] as const).flatMap((name) =>
            search[name].map((value) => (
              <FilterChip
                key={`${name} ${value}`}
                label={name === "queue" ? `serves ${value}` : `knows ${value}`}
                onRemove={() => setSearch({ [name]: search[name].filter((each) => each !== value) })}
              />
            )),
          )}
        </div>
      )}
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Workers"
          columns={COLUMNS}
          rows={steady.rows}
          gone={steady.gone}
          rowId={idOf}
          rowName={nameOf}
          isLoading={found.isPending}
          error={found.error}
          onRetry={() => found.refetch()}
          onOpen={(row) => navigate(`/cluster/workers/${encodeURIComponent(row.instance_id)}${address}`)}
          openId={openId}
          card={(row) => <WorkerCard worker={row} />}
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="No worker does that">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all workers</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="executions" title="There is no worker">
                <p className="mb-3">What is due waits until one is started:</p>
                <div className="text-left">
                  <CodeBlock code="foliot worker --tasks my.module" what="the command" />
                </div>
              </EmptyState>
            )
          }
        />
      </Panel>
    </>
  );
}

function Served({ queues }: { queues: readonly string[] | null }) {
  return queues === null ? (
    <span className="text-ink-soft text-xs">all queues</span>
  ) : (
    <Names names={queues} most={3} />
  );
}

function Known({ tasks }: { tasks: readonly string[] }) {
  if (tasks.length === 0) {
    return <span className="text-ink-soft text-xs">no functions; other targets only</span>;
  }
  return (
    <div className="flex min-w-0 items-start gap-2">
      <span className="numbers text-sm font-medium">{tasks.length}</span>
      <Names names={tasks} most={3} />
    </div>
  );
}

function WorkerCard({ worker }: { worker: Instance }) {
  return (
    <div className="flex flex-col gap-2 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <InstanceName instance={worker} tab="workers" />
        </div>
        <Heartbeat instance={worker} />
      </div>
      <Load instance={worker} />
      <div className="flex items-center gap-2">
        <span className="text-ink-soft text-xs">Serves</span>
        <Served queues={worker.queues} />
      </div>
      <Known tasks={worker.known_tasks ?? []} />
    </div>
  );
}

/** Link to the workers of a queue or of a task. */
export function WorkersLink({ by, name, count }: { by: "queue" | "task"; name: string; count: number }) {
  return (
    <Link
      href={`/cluster/workers?${new URLSearchParams({ [by]: name })}`}
      className="text-accent rounded hover:underline"
    >
      {count} {count === 1 ? "worker" : "workers"}
    </Link>
  );
}
