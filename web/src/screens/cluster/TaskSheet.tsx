import { useQuery } from "@tanstack/react-query";
import { allInstances, functionSchedules, type Task, taskFunction } from "@/api/cluster";
import { ProblemError } from "@/api/problem";
import { isFunction } from "@/api/types";
import { Link } from "@/routing/Link";
import { duration } from "@/time/format";
import { Instant } from "@/time/Instant";
import { StateBadge } from "@/ui/Badge";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Sheet } from "@/ui/Dialog";
import { FactList } from "@/ui/FactList";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { workersWith } from "./facts";
import { TaskSwitch } from "./TaskSwitch";
import { TaskState } from "./Tasks";

/** Panel of one task function: its parameters, its workers and its schedules. */
export function TaskSheet({ name, onClose }: { name: string; onClose: () => void }) {
  const found = useQuery(taskFunction(name));
  const isUnknown = found.error instanceof ProblemError && [404, 422].includes(found.error.status);
  return (
    <Sheet
      title={name}
      description={found.data?.description || undefined}
      actions={
        found.data && (
          <span className="flex h-8 items-center">
            <TaskSwitch task={found.data} />
          </span>
        )
      }
      onClose={onClose}
    >
      {found.data ? (
        <Body task={found.data} />
      ) : isUnknown ? (
        <EmptyState icon="question" title="No worker has registered it" />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}

function Body({ task }: { task: Task }) {
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          ["State", <TaskState key="state" task={task} />],
          ["Shown as", task.display_name],
          [
            "Handler",
            <span key="handler" className="flex items-center gap-1 font-mono text-xs break-all">
              {task.handler_path}
              <CopyButton text={task.handler_path} what="the handler" className="-my-2" />
            </span>,
          ],
          ["Kind", task.handler_type],
          ...(task.is_system
            ? []
            : ([
                ["Queue", task.queue ?? "that of the schedule"],
                ["Timeout", duration(task.default_timeout_seconds)],
              ] as const)),
          ["First registered", <Instant key="made" at={task.created_ts} />],
          ["Last changed", <Instant key="changed" at={task.updated_ts} />],
        ]}
      />
      <Part title="Arguments">
        {Object.keys((task.args_schema.properties as object | undefined) ?? {}).length === 0 ? (
          <p className="text-ink-soft text-sm">It takes none.</p>
        ) : (
          <JsonView value={task.args_schema} what="the schema of the arguments" />
        )}
      </Part>
      {task.is_system ? (
        <p className="text-ink-soft text-sm">
          The schedulers run it by themselves: it needs no worker and no schedule.
        </p>
      ) : (
        <>
          <Part title="Workers that know it">
            <KnowingWorkers task={task.name} />
          </Part>
          <Part title="Schedules that run it">
            <RunningSchedules task={task.name} />
          </Part>
        </>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  );
}

function KnowingWorkers({ task }: { task: string }) {
  const found = useQuery(allInstances);
  if (found.data === undefined) return <Skeleton className="h-6" />;
  const workers = workersWith(task, found.data.items);
  if (workers.length === 0) {
    return <p className="text-ink-soft text-sm">None: what is due for it can't run.</p>;
  }
  return (
    <ul className="flex flex-col gap-1 text-sm">
      {workers.slice(0, 20).map((worker) => (
        <li key={worker.instance_id} className="flex items-center gap-2">
          <Link
            href={`/cluster/workers/${encodeURIComponent(worker.instance_id)}`}
            className="text-accent truncate rounded hover:underline"
          >
            {worker.hostname} · {worker.pid}
          </Link>
          {!worker.is_live && <span className="text-bad text-xs">silent</span>}
          <span className="numbers text-ink-soft ml-auto text-xs">
            {worker.load} of {worker.capacity} slots in use
          </span>
        </li>
      ))}
      {workers.length > 20 && <li className="text-ink-soft">and {workers.length - 20} more</li>}
    </ul>
  );
}

function RunningSchedules({ task }: { task: string }) {
  const found = useQuery(functionSchedules);
  if (found.data === undefined) return <Skeleton className="h-6" />;
  const { schedules, isAll } = found.data;
  const those = schedules.filter(({ target }) => isFunction(target) && target.name === task);
  return (
    <>
      <ul className="flex flex-col gap-1 text-sm">
        {those.slice(0, 20).map((schedule) => (
          <li key={schedule.schedule_id} className="flex items-center gap-2">
            <Link
              href={`/schedules/${schedule.schedule_id}`}
              className="text-accent truncate rounded hover:underline"
            >
              {schedule.name}
            </Link>
            <span className="ml-auto">
              <StateBadge state={schedule.state} />
            </span>
          </li>
        ))}
      </ul>
      <p className="text-ink-soft text-sm">
        {those.length > 20
          ? `and ${those.length - 20} more`
          : those.length === 0
            ? isAll
              ? "No active schedule of this host."
              : "None among the first schedules of this host."
            : !isAll && "Of the first schedules of this host; there may be more."}
      </p>
    </>
  );
}
