import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { executionAttempts } from "@/api/execution-list";
import { schedule } from "@/api/schedules";
import { type Execution, isOpen } from "@/api/types";
import { Link } from "@/routing/Link";
import { pageAddress } from "@/screens/schedule/address";
import { zoneOf } from "@/screens/schedules/words";
import { duration } from "@/time/format";
import { Instant, RelativeTime } from "@/time/Instant";
import { Badge, StatusBadge } from "@/ui/Badge";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Icon } from "@/ui/Icon";
import { Skeleton } from "@/ui/State";
import { Attempts } from "./Attempts";
import { LifeLine } from "./LifeLine";
import { LogView } from "./LogView";
import { ProgressBar } from "./ProgressBar";
import { Traceback } from "./Traceback";
import { lateness, progressOf, reasonOf, TRIGGER_LOOKS, triggerOf } from "./words";

interface Props {
  execution: Execution;
  /** True: wide enough for two columns. */
  isPage: boolean;
}

/** All details of one execution. */
export function ExecutionView({ execution, isPage }: Props) {
  const attempts = useQuery(executionAttempts(execution.execution_id));
  const zone = useQuery({ ...schedule(execution.schedule_id), retry: false, staleTime: 60_000 }).data;
  const own = zone === undefined ? null : zoneOf(zone.trigger);
  const tries = attempts.data?.items ?? [];
  const facts = <Facts execution={execution} zone={own} />;
  return (
    <div
      className={isPage ? "grid items-start gap-6 xl:grid-cols-[minmax(0,1fr)_20rem]" : "flex flex-col gap-6"}
    >
      <div className="@container flex min-w-0 flex-col gap-6">
        <Standing execution={execution} />
        <Part title="Life">
          {attempts.isPending ? (
            <Skeleton className="h-16" />
          ) : (
            <LifeLine execution={execution} attempts={tries} zone={own} />
          )}
        </Part>
        <Failure execution={execution} />
        {tries.length > 0 && (
          <Part title={tries.length === 1 ? "Attempt" : `${tries.length} attempts`}>
            <Attempts attempts={tries} zone={own} />
          </Part>
        )}
        {!isPage && facts}
        <Result execution={execution} />
        {execution.status !== "skipped" && (
          <Part title="Log">
            <LogView execution={execution} zone={own} />
          </Part>
        )}
      </div>
      {isPage && facts}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="min-w-0">
      <h2 id={id} className="mb-2 text-sm font-semibold">
        {title}
      </h2>
      {children}
    </section>
  );
}

function Standing({ execution }: { execution: Execution }) {
  const progress = isOpen(execution.status) ? progressOf(execution) : null;
  const late = lateness(execution);
  return (
    <div className="flex flex-col gap-3">
      <p role="status" className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-sm">
        <StatusBadge status={execution.status} />
        {execution.cancel_requested && isOpen(execution.status) && (
          <Badge tone="warn" icon="stop">
            being cancelled
          </Badge>
        )}
        {execution.duration_seconds !== null && execution.status !== "skipped" && (
          <span>
            took <span className="numbers font-medium">{duration(execution.duration_seconds)}</span>
          </span>
        )}
        {late !== null && <span className="text-ink-soft">started {duration(late)} after its time</span>}
        {execution.attempt > 1 && <span className="text-ink-soft">attempt {execution.attempt}</span>}
      </p>
      {progress && <ProgressBar progress={progress} />}
    </div>
  );
}

function Failure({ execution }: { execution: Execution }) {
  const { error, reason, traceback, status } = execution;
  if (!error && !reason && !traceback) {
    return null;
  }
  const isCalm = status === "skipped" || status === "cancelled" || status === "success";
  return (
    <Part title={error || traceback ? "Error" : "Why"}>
      <div className="flex flex-col gap-2">
        {(error || reason) && (
          <div
            className={`flex items-start gap-2 rounded-lg py-1 pr-1 pl-3 text-sm ${isCalm ? "bg-calm-soft text-calm" : "bg-bad-soft text-bad"}`}
          >
            <Icon name={isCalm ? "question" : "warning"} className="mt-2" />
            <p className="min-w-0 grow py-1.5 [overflow-wrap:anywhere] whitespace-pre-wrap">
              {error ?? reasonOf(reason ?? "")}
            </p>
            {error && <CopyButton text={error} what="the error" />}
          </div>
        )}
        {error && reason && <p className="text-ink-soft text-sm break-words">{reasonOf(reason)}</p>}
        {traceback && <Traceback text={traceback} what="the traceback" />}
      </div>
    </Part>
  );
}

function Result({ execution }: { execution: Execution }) {
  const { result, args } = execution;
  return (
    <>
      {args !== null && (
        <Part title="Arguments given by hand">
          <JsonView value={args} what="the arguments" />
        </Part>
      )}
      {result !== null && result !== undefined && (
        <Part title="Result">
          <JsonView value={result} what="the result" />
        </Part>
      )}
    </>
  );
}

function Facts({ execution, zone }: { execution: Execution; zone: string | null }) {
  const { icon } = TRIGGER_LOOKS[execution.triggered_by];
  return (
    <Part title="Facts">
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-x-3 gap-y-2 text-sm">
        <Fact name="Schedule">
          {execution.schedule_name === null ? (
            "deleted"
          ) : (
            <Link
              href={`/schedules/${execution.schedule_id}`}
              className="text-accent rounded break-words hover:underline"
            >
              {execution.schedule_name}
            </Link>
          )}
        </Fact>
        <Fact name="Version">
          {execution.schedule_name === null ? (
            execution.aggregate_version
          ) : (
            <Link href={versionAddress(execution)} className="text-accent rounded hover:underline">
              {execution.aggregate_version}
              <span className="sr-only"> of the schedule</span>
            </Link>
          )}
        </Fact>
        <Fact name="Set off">
          <span className="flex items-center gap-1.5">
            <Icon name={icon} size={14} className="text-ink-faint" />
            {triggerOf(execution)}
          </span>
        </Fact>
        <Fact name="Fire time">
          <Instant at={execution.fire_ts} zone={zone} />
          <span className="text-ink-faint">
            {" "}
            <RelativeTime at={execution.fire_ts} zone={zone} />
          </span>
        </Fact>
        {execution.missed_from_ts && (
          <Fact name="Stands for">
            {execution.missed_count} missed since <Instant at={execution.missed_from_ts} zone={zone} />
          </Fact>
        )}
        <Fact name="Queue">
          {execution.queue}, {execution.priority} priority
        </Fact>
        {execution.worker_id && <Copied name="Worker" text={execution.worker_id} what="the worker's id" />}
        {execution.scheduler_instance_id && (
          <Copied name="Decided by" text={execution.scheduler_instance_id} what="the scheduler's id" />
        )}
        {execution.trace_id && <Copied name="Trace" text={execution.trace_id} what="the trace id" />}
        {execution.external_id && (
          <Copied name="External id" text={execution.external_id} what="the external id" />
        )}
        <Copied name="Id" text={execution.execution_id} what="the id" />
      </dl>
    </Part>
  );
}

function versionAddress({ schedule_id, aggregate_version }: Execution): string {
  return pageAddress(schedule_id, { tab: "versions", version: String(aggregate_version) });
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-faint">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function Copied({ name, text, what }: { name: string; text: string; what: string }) {
  return (
    <Fact name={name}>
      <span className="-my-1.5 flex items-center gap-1">
        <code className="truncate font-mono text-xs" title={text}>
          {text}
        </code>
        <CopyButton text={text} what={what} />
      </span>
    </Fact>
  );
}
