import { useQuery } from "@tanstack/react-query";
import { createContext, useContext, useMemo, useState } from "react";
import { allInstances, allQueues, type Queue, usePauseQueue, useResumeQueue } from "@/api/cluster";
import { textOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { Link } from "@/routing/Link";
import { navigate } from "@/routing/location";
import { useZone } from "@/settings/zone";
import { useNow } from "@/time/clock";
import { count, fullInstant, span } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Menu, MenuItem } from "@/ui/Menu";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { toast } from "@/ui/Toasts";
import { PRIORITIES, START_WITHIN_SECONDS, serversOf, waitingIn } from "./facts";
import { Panel } from "./parts";
import { WorkersLink } from "./Workers";

const column = columnsOf<Queue>();
const COLUMNS = column.columns([
  column.display({
    id: "name",
    header: "Queue",
    cell: ({ row }) => <Name queue={row.original} />,
  }),
  column.display({
    id: "depth",
    header: "Waiting, by priority",
    meta: { className: "w-72" },
    cell: ({ row }) => <Depth queue={row.original} />,
  }),
  column.display({
    id: "oldest",
    header: "Oldest",
    meta: { className: "w-24" },
    cell: ({ row }) => <Oldest queue={row.original} />,
  }),
  column.display({
    id: "late",
    header: "SLA",
    meta: { className: "w-28" },
    cell: ({ row }) => <Late queue={row.original} />,
  }),
  column.display({
    id: "running",
    header: "Running",
    meta: { className: "w-24" },
    cell: ({ row }) => <RunningCount queue={row.original} />,
  }),
  column.display({
    id: "workers",
    header: "Served by",
    meta: { className: "w-32" },
    cell: ({ row }) => <ServedBy queue={row.original} />,
  }),
  column.display({
    id: "actions",
    header: "",
    meta: { label: "Actions", className: "w-36" },
    cell: ({ row }) => <Actions queue={row.original} />,
  }),
]);

const idOf = (row: Queue) => row.name;

interface Steering {
  askPause: (queue: Queue) => void;
  resume: (queue: Queue) => void;
  busyName: string | null;
  whyNot: string | null;
}
const SteeringContext = createContext<Steering | null>(null);

/** List of the queues: what waits in each, and whether it is paused. */
export function Queues() {
  const found = useQuery(allQueues);
  const steady = useSteadyRows(found.data?.items, idOf, "queues");
  const [asking, setAsking] = useState<Queue | null>(null);
  const pausing = usePauseQueue();
  const { mutate: resumeIt, ...resuming } = useResumeQueue();
  const whyNot = useWhyNot("operator");
  const busyName = resuming.isPending ? resuming.variables.name : null;

  const steering = useMemo<Steering>(
    () => ({
      askPause: setAsking,
      resume: (queue) =>
        resumeIt(
          { name: queue.name },
          {
            onSuccess: () => toast({ tone: "good", text: `Resumed queue ${queue.name}` }),
            onError: (error) =>
              toast({ tone: "bad", text: `Queue ${queue.name} is not resumed`, detail: textOf(error) }),
          },
        ),
      busyName,
      whyNot,
    }),
    [resumeIt, busyName, whyNot],
  );

  function close() {
    setAsking(null);
    pausing.reset();
  }

  return (
    <SteeringContext value={steering}>
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Queues"
          columns={COLUMNS}
          rows={steady.rows}
          gone={steady.gone}
          rowId={idOf}
          rowName={idOf}
          isLoading={found.isPending}
          error={found.error}
          onRetry={() => found.refetch()}
          card={(row) => <QueueCard queue={row} />}
          empty={
            <EmptyState icon="executions" title="There is no queue yet">
              A queue is there once a schedule names it, or something waits in it.
            </EmptyState>
          }
        />
      </Panel>
      <p className="text-ink-soft mt-2 px-1 text-xs">
        What is ready should start within {START_WITHIN_SECONDS.high} s at priority high,{" "}
        {START_WITHIN_SECONDS.medium} s at medium, {START_WITHIN_SECONDS.low} s at low.
      </p>
      {asking && (
        <Confirm
          title={`Pause queue ${asking.name}?`}
          verb="Pause"
          isBusy={pausing.isPending}
          error={pausing.error}
          onClose={close}
          onConfirm={(reason) =>
            pausing.mutate(
              { name: asking.name, reason },
              {
                onSuccess: () => {
                  toast({
                    tone: "good",
                    text: `Paused queue ${asking.name}`,
                    action: { label: "Undo", run: () => steering.resume(asking) },
                  });
                  close();
                },
              },
            )
          }
        >
          Workers take nothing from it until it is resumed. What runs goes on, and what becomes due waits.
        </Confirm>
      )}
    </SteeringContext>
  );
}

function Name({ queue }: { queue: Queue }) {
  return (
    <div className="flex min-w-0 flex-col items-start gap-0.5">
      <span className="max-w-full truncate font-medium" title={queue.name}>
        {queue.name}
      </span>
      <Badge tone={queue.paused ? "warn" : "good"} icon={queue.paused ? "pause" : "check"}>
        {queue.paused ? "paused" : "open"}
      </Badge>
    </div>
  );
}

/** The number of waiting executions: a bar with one part per priority, above the numbers. */
function Depth({ queue }: { queue: Queue }) {
  const waiting = waitingIn(queue);
  return (
    <div className="flex flex-col gap-1.5">
      <div aria-hidden="true" className="bg-line flex h-1.5 gap-px overflow-hidden rounded-full">
        {PRIORITIES.map((priority) => {
          const part = queue.depth[priority] ?? 0;
          return part === 0 ? null : (
            <div
              key={priority}
              className={`${PRIORITY_COLOURS[priority]} h-full`}
              style={{ width: `${(100 * part) / waiting}%` }}
            />
          );
        })}
      </div>
      <dl className="flex gap-4 text-xs">
        {PRIORITIES.map((priority) => (
          <div key={priority} className="flex items-center gap-1.5">
            <span aria-hidden="true" className={`size-2 rounded-sm ${PRIORITY_COLOURS[priority]}`} />
            <dt className="text-ink-soft">{priority}</dt>
            <dd className="numbers font-medium">{count(queue.depth[priority] ?? 0, queue.is_capped)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

const PRIORITY_COLOURS = {
  high: "bg-(--status-failed)",
  medium: "bg-(--status-running)",
  low: "bg-(--status-cancelled)",
} as const;

function Oldest({ queue }: { queue: Queue }) {
  const now = useNow();
  const zone = useZone();
  const at = queue.oldest_ready_ts;
  if (at === null) {
    return <span className="text-ink-faint text-xs">none</span>;
  }
  return (
    <time dateTime={at} title={fullInstant(new Date(at), zone)} className="numbers whitespace-nowrap">
      {span(Math.max(0, now.getTime() - Date.parse(at)))}
    </time>
  );
}

function Late({ queue }: { queue: Queue }) {
  return queue.sla_missed_count > 0 ? (
    <Badge tone="bad" icon="hourglass">
      {`${count(queue.sla_missed_count, queue.is_capped)} missed`}
    </Badge>
  ) : (
    <Badge tone="good" icon="check">
      kept
    </Badge>
  );
}

function RunningCount({ queue }: { queue: Queue }) {
  return (
    <Link
      href={`/executions?${new URLSearchParams({ queue: queue.name, status: "running" })}`}
      aria-label={`${queue.running_count} running in ${queue.name}`}
      className="numbers text-accent rounded underline underline-offset-2"
    >
      {count(queue.running_count, queue.is_running_capped)}
    </Link>
  );
}

function ServedBy({ queue }: { queue: Queue }) {
  const instances = useQuery(allInstances);
  if (instances.data === undefined) {
    return <span className="text-ink-faint text-xs">…</span>;
  }
  const servers = serversOf(queue.name, instances.data.items).length;
  if (servers === 0) {
    return (
      <Badge tone={waitingIn(queue) > 0 ? "bad" : "warn"} icon="warning">
        no worker
      </Badge>
    );
  }
  return <WorkersLink by="queue" name={queue.name} count={servers} />;
}

function Actions({ queue }: { queue: Queue }) {
  const steering = useContext(SteeringContext);
  if (steering === null) return null;
  return (
    <div className="flex items-center justify-end gap-1">
      {queue.paused ? (
        <Button
          size="small"
          icon="play"
          whyNot={steering.whyNot}
          isBusy={steering.busyName === queue.name}
          onClick={() => steering.resume(queue)}
        >
          Resume
        </Button>
      ) : (
        <Button size="small" icon="pause" whyNot={steering.whyNot} onClick={() => steering.askPause(queue)}>
          Pause…
        </Button>
      )}
      <Menu button={<IconButton icon="more" label={`More on ${queue.name}`} />}>
        <MenuItem
          icon="schedules"
          onSelect={() => navigate(`/schedules?${new URLSearchParams({ queue: queue.name })}`)}
        >
          Its schedules
        </MenuItem>
        <MenuItem
          icon="executions"
          onSelect={() => navigate(`/executions?${new URLSearchParams({ queue: queue.name })}`)}
        >
          Its executions
        </MenuItem>
        <AuditItem queue={queue} />
      </Menu>
    </div>
  );
}

function AuditItem({ queue }: { queue: Queue }) {
  const whyNot = useWhyNot("admin");
  const search = new URLSearchParams({ resource_type: "queue", resource_id: queue.name });
  return (
    <MenuItem icon="form" whyNot={whyNot} onSelect={() => navigate(`/access/audit?${search}`)}>
      Who paused and resumed it
    </MenuItem>
  );
}

function QueueCard({ queue }: { queue: Queue }) {
  return (
    <div className="flex flex-col gap-2.5 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <Name queue={queue} />
        </div>
        <Actions queue={queue} />
      </div>
      <Depth queue={queue} />
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs">
        <Late queue={queue} />
        <span className="text-ink-soft">
          Oldest <Oldest queue={queue} />
        </span>
        <span className="text-ink-soft">
          Running <RunningCount queue={queue} />
        </span>
        <ServedBy queue={queue} />
      </div>
    </div>
  );
}
