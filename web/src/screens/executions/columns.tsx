import type { MouseEvent } from "react";
import { type Execution, isBad, isOpen } from "@/api/types";
import { Link } from "@/routing/Link";
import { navigate, useLocation } from "@/routing/location";
import { text, useSearch, writeSearch } from "@/routing/search";
import { nameOf, useExecutionActions } from "@/screens/execution/actions";
import { ProgressBar } from "@/screens/execution/ProgressBar";
import { lateness, outcomeOf, progressOf, TRIGGER_LOOKS, triggerOf } from "@/screens/execution/words";
import { Countdown } from "@/time/Countdown";
import { useNow } from "@/time/clock";
import { duration } from "@/time/format";
import { Instant, RelativeTime } from "@/time/Instant";
import { StatusBadge } from "@/ui/Badge";
import { IconButton } from "@/ui/Button";
import { copyText } from "@/ui/Copy";
import { Icon } from "@/ui/Icon";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { columnsOf } from "@/ui/Table";
import { toast } from "@/ui/Toasts";
import { shape } from "./filters";

const column = columnsOf<Execution>();

export const COLUMNS = column.columns([
  column.display({
    id: "status",
    header: "Status",
    meta: { className: "w-30" },
    cell: ({ row }) => <StatusBadge status={row.original.status} />,
  }),
  column.display({
    id: "schedule",
    header: "Schedule",
    cell: ({ row }) => <Name execution={row.original} />,
  }),
  column.display({
    id: "fire",
    header: "Fire time",
    meta: { className: "w-34" },
    cell: ({ row }) => <FireTime execution={row.original} />,
  }),
  column.display({
    id: "took",
    header: "Took",
    meta: { className: "w-34" },
    cell: ({ row }) => <Took execution={row.original} />,
  }),
  column.display({
    id: "queue",
    header: "Queue",
    meta: { className: "w-28" },
    cell: ({ row }) => (
      <div className="min-w-0">
        <div className="truncate" title={row.original.queue}>
          {row.original.queue}
        </div>
        <div className="text-ink-faint text-xs">{row.original.priority}</div>
      </div>
    ),
  }),
  column.display({
    id: "outcome",
    header: "Outcome",
    cell: ({ row }) => <Outcome execution={row.original} />,
  }),
  column.display({
    id: "actions",
    header: "",
    meta: { label: "Actions", className: "w-13 text-right" },
    cell: ({ row }) => <ExecutionMenu execution={row.original} />,
  }),
]);

/** URL of the list with the panel of one execution open. */
export function panelAddress(search: string, id: string): string {
  return `/executions${writeSearch(shape, search, { open: id })}`;
}

const panelShape = { open: text(), level: text() };

/** URL of the list with no panel open. */
export function closedAddress(search: string): string {
  return `/executions${writeSearch(panelShape, search, { open: "", level: "" })}`;
}

function Name({ execution }: { execution: Execution }) {
  const { search } = useLocation();
  const { icon } = TRIGGER_LOOKS[execution.triggered_by];
  function open(event: MouseEvent) {
    // A click with a modifier key opens the page in a new tab; a plain click opens the panel.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
    event.preventDefault();
    navigate(panelAddress(search, execution.execution_id));
  }
  return (
    <div className="min-w-0">
      <Link
        href={`/executions/${execution.execution_id}`}
        onClick={open}
        title={nameOf(execution)}
        className="block truncate rounded leading-6 font-medium hover:underline"
      >
        {nameOf(execution)}
      </Link>
      <span className="text-ink-soft flex min-w-0 items-center gap-1 text-xs">
        <Icon name={icon} size={13} className="text-ink-faint" />
        <span className="truncate" title={triggerOf(execution)}>
          {triggerOf(execution)}
        </span>
        {execution.attempt > 1 && <span className="shrink-0">· attempt {execution.attempt}</span>}
      </span>
    </div>
  );
}

function FireTime({ execution }: { execution: Execution }) {
  return (
    <div>
      <Instant at={execution.fire_ts} />
      <div className="text-ink-faint text-xs">
        <RelativeTime at={execution.fire_ts} />
        {execution.missed_count > 0 && (
          <span title="Earlier times that it decides too"> +{execution.missed_count} missed</span>
        )}
      </div>
    </div>
  );
}

function Took({ execution }: { execution: Execution }) {
  const late = lateness(execution);
  const took = execution.status === "skipped" ? null : execution.duration_seconds;
  return (
    <div className="numbers">
      {took !== null ? (
        duration(took)
      ) : execution.status === "running" && execution.started_ts ? (
        <Running since={execution.started_ts} />
      ) : (
        <span className="text-ink-faint">–</span>
      )}
      {late !== null && <div className="text-ink-faint text-xs">{duration(late)} late</div>}
    </div>
  );
}

function Running({ since }: { since: string }) {
  const [{ live }] = useSearch(shape);
  return live === "on" ? <Passing since={since} /> : <span className="text-busy">running</span>;
}

function Passing({ since }: { since: string }) {
  const seconds = Math.floor((useNow().getTime() - Date.parse(since)) / 1000);
  return <span className="text-busy">{duration(Math.max(0, seconds)).replace(/^0 µs$/, "0 s")}</span>;
}

function Outcome({ execution }: { execution: Execution }) {
  const { status, ready_ts: ready } = execution;
  const progress = isOpen(status) ? progressOf(execution) : null;
  const words = outcomeOf(execution);
  return (
    <div className="min-w-0">
      <p
        className={`truncate ${isBad(status) || status === "retrying" ? "text-ink" : "text-ink-soft"} ${execution.result !== null && !execution.error ? "font-mono text-xs" : ""}`}
        title={words || undefined}
      >
        {words}
      </p>
      {progress && <ProgressBar progress={progress} isSmall />}
      {status === "retrying" && ready && (
        <p className="text-warn text-xs">
          next try: <Countdown at={ready} />
        </p>
      )}
      {status === "pending" && ready === null && (
        <p className="text-ink-faint text-xs">waits for another run of its schedule</p>
      )}
      {execution.cancel_requested && isOpen(status) && (
        <p className="text-warn text-xs">is being cancelled</p>
      )}
    </div>
  );
}

function ExecutionMenu({ execution }: { execution: Execution }) {
  const { ask, whyNot } = useExecutionActions();
  const { search } = useLocation();
  async function copyId() {
    const isCopied = await copyText(execution.execution_id);
    toast(
      isCopied
        ? { tone: "good", text: "Copied the id" }
        : { tone: "bad", text: "This browser lets nothing be copied here" },
    );
  }
  return (
    <Menu button={<IconButton icon="more" label={`Actions for ${nameOf(execution)}`} />}>
      <MenuItem icon="panel" onSelect={() => navigate(panelAddress(search, execution.execution_id))}>
        Open
      </MenuItem>
      <MenuItem icon="screen" onSelect={() => navigate(`/executions/${execution.execution_id}`)}>
        Open as a page
      </MenuItem>
      <MenuItem icon="schedules" onSelect={() => navigate(`/schedules/${execution.schedule_id}`)}>
        Go to the schedule
      </MenuItem>
      <MenuItem icon="copy" onSelect={copyId}>
        Copy id
      </MenuItem>
      <MenuLine />
      <MenuItem icon="retry" whyNot={whyNot("retry", execution)} onSelect={() => ask("retry", execution)}>
        Try again…
      </MenuItem>
      <MenuItem
        icon="stop"
        isDangerous
        whyNot={whyNot("cancel", execution)}
        onSelect={() => ask("cancel", execution)}
      >
        Cancel…
      </MenuItem>
    </Menu>
  );
}

/** A row of the list on narrow screens. */
export function ExecutionCard({ execution }: { execution: Execution }) {
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex items-start gap-1.5">
        <div className="min-w-0 grow">
          <Name execution={execution} />
        </div>
        <StatusBadge status={execution.status} />
        <div className="-mt-1.5 -mr-2">
          <ExecutionMenu execution={execution} />
        </div>
      </div>
      <div className="grid grid-cols-2 gap-3 text-sm">
        <FireTime execution={execution} />
        <Took execution={execution} />
      </div>
      <div className="text-sm">
        <Outcome execution={execution} />
      </div>
    </div>
  );
}
