import { useState } from "react";
import type { Attempt } from "@/api/execution-list";
import { isOpen } from "@/api/types";
import { useNow } from "@/time/clock";
import { duration } from "@/time/format";
import { Instant } from "@/time/Instant";
import { StatusBadge, statusColour } from "@/ui/Badge";
import { Icon } from "@/ui/Icon";
import { type Bar, barsOf } from "./life";
import { Traceback } from "./Traceback";

interface Props {
  attempts: readonly Attempt[];
  zone: string | null;
}

/** All attempts as bars on a common time axis. */
export function Attempts({ attempts, zone }: Props) {
  const now = useNow();
  return (
    <ol className="border-line divide-line divide-y rounded-lg border">
      {barsOf(attempts, now).map((bar) => (
        <Row key={bar.attempt.attempt} bar={bar} zone={zone} />
      ))}
    </ol>
  );
}

function Row({ bar, zone }: { bar: Bar; zone: string | null }) {
  const [isShown, setShown] = useState(false);
  const { attempt } = bar;
  const hasMore = attempt.error !== null || attempt.traceback !== null;
  const line = (
    <>
      <span className="numbers text-ink-soft w-5 shrink-0 text-xs">
        <span className="sr-only">Attempt </span>
        {attempt.attempt}
      </span>
      <span className="w-22 shrink-0">
        <StatusBadge status={attempt.status} />
      </span>
      <span aria-hidden="true" className="bg-sunken relative h-2.5 min-w-12 grow rounded-sm">
        <span
          className={`absolute inset-y-0 rounded-sm ${isOpen(attempt.status) ? "animate-waiting" : ""}`}
          style={{
            left: `${bar.left * 100}%`,
            width: `${bar.width * 100}%`,
            background: statusColour(attempt.status),
          }}
        />
      </span>
      <span className="numbers w-16 shrink-0 text-right text-xs">
        {bar.seconds === null ? "" : duration(bar.seconds)}
      </span>
      <Icon
        name={isShown ? "down" : "right"}
        size={12}
        className={`text-ink-faint ${hasMore ? "" : "invisible"}`}
      />
    </>
  );
  return (
    <li>
      {hasMore ? (
        <button
          type="button"
          aria-expanded={isShown}
          onClick={() => setShown(!isShown)}
          className="hover:bg-hover flex w-full items-center gap-2 rounded-lg px-3 py-2 text-left focus-visible:-outline-offset-2"
        >
          {line}
        </button>
      ) : (
        <div className="flex items-center gap-2 px-3 py-2">{line}</div>
      )}
      {isShown && (
        <div className="flex flex-col gap-2 px-3 pb-3">
          <p className="text-ink-soft flex flex-wrap gap-x-3 text-xs">
            {attempt.started_ts && (
              <span>
                started <Instant at={attempt.started_ts} zone={zone} />
              </span>
            )}
            {attempt.worker_id && <span className="break-all">by {attempt.worker_id}</span>}
          </p>
          {attempt.error && (
            <p className="text-bad text-sm break-words whitespace-pre-wrap">{attempt.error}</p>
          )}
          {attempt.traceback && (
            <Traceback text={attempt.traceback} what={`the traceback of attempt ${attempt.attempt}`} />
          )}
        </div>
      )}
    </li>
  );
}
