import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { executionLog, isAtLeast, type LogLine } from "@/api/execution-log";
import { type Execution, isOpen } from "@/api/types";
import { oneOf, useSearch } from "@/routing/search";
import { useZone } from "@/settings/zone";
import { presently } from "@/time/clock";
import { clockTime, count, fullInstant } from "@/time/format";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/Copy";
import { ErrorState, Skeleton } from "@/ui/State";

const LEVELS = ["debug", "info", "warning", "error"] as const;
const LEVEL_WORDS: Record<(typeof LEVELS)[number], string> = {
  debug: "All levels",
  info: "Info and above",
  warning: "Warnings and errors",
  error: "Errors",
};
const shape = { level: oneOf(LEVELS, "debug") };

const FOLLOW_MS = 1500;
/** Keep polling this long after the end: log lines arrive in batches, the last ones shortly after the end. */
const LINGER_MS = 10_000;
/** Distance in pixels at which the view counts as scrolled to the end. */
const NEAR = 24;

/** Log of an execution. Polls for new lines while it runs. */
export function LogView({ execution, zone }: { execution: Execution; zone: string | null }) {
  const [{ level }, setSearch] = useSearch(shape);
  const log = useQuery({
    ...executionLog(execution.execution_id),
    refetchInterval: () => (mayGrow(execution) ? FOLLOW_MS : false),
  });
  const lines = log.data?.lines;
  const shown = useMemo(() => lines?.filter((line) => isAtLeast(line.level, level)) ?? [], [lines, level]);
  const text = () =>
    shown.map((line) => `${line.logged_ts} ${line.level} ${line.logger}: ${line.message}`).join("\n");

  if (lines === undefined) {
    return log.error ? (
      <ErrorState error={log.error} onRetry={() => log.refetch()} />
    ) : (
      <Skeleton className="h-32" />
    );
  }
  return (
    <div className="border-line rounded-lg border">
      <div className="border-line flex min-h-10 flex-wrap items-center gap-2 border-b px-2 py-1">
        <select
          aria-label="Levels to show"
          value={level}
          onChange={(event) => setSearch({ level: event.target.value as typeof level }, { replace: true })}
          className="border-control bg-surface h-7 rounded-md border px-1.5 text-xs"
        >
          {LEVELS.map((each) => (
            <option key={each} value={each}>
              {LEVEL_WORDS[each]}
            </option>
          ))}
        </select>
        <span className="numbers text-ink-faint text-xs">
          {shown.length === lines.length
            ? `${count(lines.length)} ${lines.length === 1 ? "line" : "lines"}`
            : `${count(shown.length)} of ${count(lines.length)} lines`}
        </span>
        {isOpen(execution.status) && (
          <span className="text-busy flex items-center gap-1.5 text-xs">
            <span className="animate-waiting size-1.5 rounded-full bg-(--status-running)" />
            following
          </span>
        )}
        {shown.length > 0 && <CopyButton text={text()} what="the log" className="-my-1 ml-auto" />}
      </div>
      {shown.length === 0 ? (
        <p className="text-ink-soft px-3 py-6 text-center text-sm">
          {lines.length > 0
            ? "No line is of these levels."
            : isOpen(execution.status)
              ? "Nothing logged yet."
              : "It logged nothing."}
        </p>
      ) : (
        <Lines lines={shown} zone={zone} />
      )}
      {log.data?.hasMore && (
        <div className="border-line flex justify-center border-t p-1.5">
          <Button look="quiet" size="small" isBusy={log.isFetching} onClick={() => void log.refetch()}>
            Read on
          </Button>
        </div>
      )}
    </div>
  );
}

function mayGrow({ status, ended_ts: ended }: Execution): boolean {
  return isOpen(status) || (ended !== null && presently().getTime() - Date.parse(ended) < LINGER_MS);
}

function Lines({ lines, zone }: { lines: readonly LogLine[]; zone: string | null }) {
  const box = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const last = lines.at(-1);
  const lastKey = last === undefined ? "" : keyOf(last);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new last line is what is followed
  useEffect(() => {
    if (isAtEnd) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [lastKey]);
  return (
    <div className="relative">
      <div
        ref={box}
        role="log"
        // Do not announce new lines to screen readers: there may be many per second.
        aria-live="off"
        aria-label="Log"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={({ currentTarget: at }) =>
          setAtEnd(at.scrollHeight - at.scrollTop - at.clientHeight < NEAR)
        }
        className="bg-sunken max-h-96 overflow-y-auto rounded-b-lg py-1.5 font-mono text-xs leading-5 focus-visible:-outline-offset-2"
      >
        {lines.map((line, index) => (
          <Line
            key={keyOf(line)}
            line={line}
            zone={zone}
            beginsAttempt={line.attempt !== lines[index - 1]?.attempt && (index > 0 || line.attempt > 1)}
          />
        ))}
      </div>
      {!isAtEnd && (
        <Button
          size="small"
          icon="down"
          className="absolute right-4 bottom-2"
          onClick={() => box.current?.scrollTo({ top: box.current.scrollHeight })}
        >
          To the end
        </Button>
      )}
    </div>
  );
}

function keyOf(line: LogLine): string {
  return `${line.attempt} ${line.line}`;
}

const LEVEL_COLOURS: Record<string, string> = {
  debug: "text-ink-faint",
  info: "text-busy",
  warning: "text-warn",
  error: "text-bad",
  critical: "text-bad",
};

interface LineProps {
  line: LogLine;
  zone: string | null;
  beginsAttempt: boolean;
}

function Line({ line, zone, beginsAttempt }: LineProps) {
  const shown = useZone(zone);
  const at = new Date(line.logged_ts);
  return (
    <>
      {beginsAttempt && (
        <p className="text-ink-faint border-line mx-3 my-1 border-b pb-0.5 font-sans">
          Attempt {line.attempt}
        </p>
      )}
      <p className="flex flex-wrap gap-x-2 px-3 @lg:flex-nowrap">
        <time dateTime={line.logged_ts} title={fullInstant(at, shown)} className="text-ink-faint shrink-0">
          {clockTime(at, shown)}
        </time>
        <span className={`w-14 shrink-0 ${LEVEL_COLOURS[line.level] ?? "text-odd"}`}>{line.level}</span>
        <span className="min-w-0 basis-full [overflow-wrap:anywhere] whitespace-pre-wrap @lg:basis-auto">
          <span className="text-ink-faint">{line.logger} </span>
          {line.message}
        </span>
      </p>
    </>
  );
}
