import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { allTasks, functionSchedules, type Task, taskList } from "@/api/cluster";
import { Link } from "@/routing/Link";
import { navigate, useLocation } from "@/routing/location";
import { oneOf, text, useSearch } from "@/routing/search";
import { duration } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CodeBlock } from "@/ui/Code";
import { Facet, FilterBar, SearchBox, words } from "@/ui/Filters";
import { Icon } from "@/ui/Icon";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { type Stranded, strandedOf } from "./facts";
import { Panel } from "./parts";
import { TaskSwitch } from "./TaskSwitch";
import { WorkersLink } from "./Workers";

const STATES = ["on", "off"] as const;
const KINDS = ["yours", "system"] as const;
const shape = {
  q: text(),
  switched: oneOf(["either", ...STATES] as const, "either"),
  kind: oneOf(["either", ...KINDS] as const, "either"),
};
const UNFILTERED = { q: "", switched: "either" as const, kind: "either" as const };

const column = columnsOf<Task>();
const COLUMNS = column.columns([
  column.display({
    id: "on",
    header: "",
    meta: { label: "Switched on", className: "w-14" },
    cell: ({ row }) => <TaskSwitch task={row.original} />,
  }),
  column.display({
    id: "name",
    header: "Task function",
    cell: ({ row }) => <Name task={row.original} />,
  }),
  column.display({
    id: "state",
    header: "State",
    meta: { className: "w-32" },
    cell: ({ row }) => <TaskState task={row.original} />,
  }),
  column.display({
    id: "workers",
    header: "Known to",
    meta: { className: "w-32" },
    cell: ({ row }) => <KnownTo task={row.original} />,
  }),
  column.display({
    id: "queue",
    header: "Queue, timeout",
    meta: { className: "w-36" },
    cell: ({ row }) => <Defaults task={row.original} />,
  }),
  column.display({
    id: "handler",
    header: "Handler",
    meta: { className: "w-56" },
    cell: ({ row }) => (
      <code className="text-ink-soft block truncate font-mono text-xs" title={row.original.handler_path}>
        {row.original.handler_path}
      </code>
    ),
  }),
]);

const idOf = (row: Task) => row.name;

/** List of the task functions of this cluster. */
export function Tasks({ openId }: { openId: string | null }) {
  const [search, setSearch] = useSearch(shape);
  const { search: address } = useLocation();
  const list = useInfiniteQuery({
    ...taskList({
      q: search.q,
      isActive: search.switched === "either" ? null : search.switched === "on",
      isSystem: search.kind === "either" ? null : search.kind === "system",
    }),
    placeholderData: keepPreviousData,
  });
  const fresh = useMemo(() => list.data?.pages.flatMap((page) => page.items), [list.data]);
  const steady = useSteadyRows(fresh, idOf, JSON.stringify([search, list.isPlaceholderData]));
  const find = useCallback((q: string) => setSearch({ q }, { replace: true }), [setSearch]);
  const isFiltered = search.q !== "" || search.switched !== "either" || search.kind !== "either";
  return (
    <>
      <StrandedNote />
      <FilterBar
        label="Filter task functions"
        search={<SearchBox label="Name or description" value={search.q} onChange={find} />}
        onClear={isFiltered ? () => setSearch(UNFILTERED) : null}
      >
        <Facet
          label="Switched"
          choices={words(STATES)}
          chosen={search.switched === "either" ? [] : [search.switched]}
          onChange={(chosen) => setSearch({ switched: chosen.length === 1 ? chosen[0] : "either" })}
        />
        <Facet
          label="Kind"
          choices={words(KINDS)}
          chosen={search.kind === "either" ? [] : [search.kind]}
          onChange={(chosen) => setSearch({ kind: chosen.length === 1 ? chosen[0] : "either" })}
        />
      </FilterBar>
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Task functions"
          columns={COLUMNS}
          rows={steady.rows}
          gone={steady.gone}
          rowId={idOf}
          rowName={idOf}
          isLoading={list.isPending || list.isPlaceholderData}
          error={list.error}
          onRetry={() => list.refetch()}
          onOpen={(row) => navigate(`/cluster/tasks/${encodeURIComponent(row.name)}${address}`)}
          openId={openId}
          card={(row) => <TaskCard task={row} />}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="No task function matches">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="function" title="No worker has registered a task function">
                <p className="mb-3">They come with the code that a worker is started with:</p>
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

const WHY: Record<Stranded["why"], string> = {
  unknown: "was never registered",
  "no worker": "is known to no live worker",
  "switched off": "is switched off",
};

/** Warning about schedules whose task function no worker would run. */
function StrandedNote() {
  const schedules = useQuery(functionSchedules);
  const tasks = useQuery(allTasks);
  const stranded = useMemo(
    () =>
      schedules.data && tasks.data
        ? strandedOf(schedules.data.schedules, tasks.data.tasks, tasks.data.isAll)
        : [],
    [schedules.data, tasks.data],
  );
  return (
    <div role="status" className="empty:hidden">
      {stranded.length > 0 && (
        <section
          aria-label="Schedules whose task can't run"
          className="bg-warn-soft mb-4 flex gap-2.5 rounded-lg px-4 py-3 text-sm"
        >
          <Icon name="warning" className="text-warn mt-0.5" />
          <div className="min-w-0">
            <p className="text-warn font-medium">
              {stranded.length === 1
                ? "A task function that schedules run can't run now."
                : `${stranded.length} task functions that schedules run can't run now.`}
            </p>
            <ul className="mt-1 flex flex-col gap-1">
              {stranded.slice(0, 5).map((each) => (
                <li key={each.task}>
                  <code className="font-mono text-xs">{each.task}</code> {WHY[each.why]}:{" "}
                  {each.schedules.slice(0, 3).map((schedule, index) => (
                    <span key={schedule.schedule_id}>
                      {index > 0 && ", "}
                      <Link
                        href={`/schedules/${schedule.schedule_id}`}
                        className="rounded font-medium underline underline-offset-2"
                      >
                        {schedule.name}
                      </Link>
                    </span>
                  ))}
                  {each.schedules.length > 3 && ` and ${each.schedules.length - 3} more`}
                </li>
              ))}
              {stranded.length > 5 && <li>and {stranded.length - 5} more</li>}
            </ul>
          </div>
        </section>
      )}
    </div>
  );
}

function Name({ task }: { task: Task }) {
  const { search } = useLocation();
  return (
    <div className="min-w-0">
      <span className="flex items-center gap-2">
        <Link
          href={`/cluster/tasks/${encodeURIComponent(task.name)}${search}`}
          className="block truncate rounded font-medium hover:underline"
        >
          {task.name}
        </Link>
        {task.is_system && <span className="text-ink-faint shrink-0 text-xs">system</span>}
      </span>
      <span className="text-ink-soft block truncate text-xs" title={task.description}>
        {task.description || task.display_name}
      </span>
    </div>
  );
}

/** The defaults for schedules of this task. The scheduler's own tasks need no queue and no timeout. */
function Defaults({ task }: { task: Task }) {
  if (task.is_system) {
    return <span className="text-ink-soft text-xs">none</span>;
  }
  return (
    <div className="flex min-w-0 flex-col text-xs">
      <span className="truncate">{task.queue ?? "the schedule's"}</span>
      <span className="text-ink-soft">{duration(task.default_timeout_seconds)}</span>
    </div>
  );
}

export function TaskState({ task }: { task: Task }) {
  if (!task.is_active) {
    return (
      <Badge tone="calm" icon="stop">
        switched off
      </Badge>
    );
  }
  return task.worker_count > 0 || task.is_system ? (
    <Badge tone="good" icon="check">
      ready
    </Badge>
  ) : (
    <Badge tone="warn" icon="warning">
      no worker
    </Badge>
  );
}

export function KnownTo({ task }: { task: Task }) {
  if (task.is_system) {
    return <span className="text-ink-soft text-xs">the schedulers</span>;
  }
  return task.worker_count === 0 ? (
    <span className="text-ink-soft text-xs">no live worker</span>
  ) : (
    <WorkersLink by="task" name={task.name} count={task.worker_count} />
  );
}

function TaskCard({ task }: { task: Task }) {
  return (
    <div className="flex flex-col gap-2 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <Name task={task} />
        </div>
        <TaskSwitch task={task} />
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <TaskState task={task} />
        <KnownTo task={task} />
        {!task.is_system && (
          <span className="text-ink-soft text-xs">
            {task.queue ?? "the schedule's queue"}, {duration(task.default_timeout_seconds)}
          </span>
        )}
      </div>
    </div>
  );
}
