import type { Attempt } from "@/api/execution-list";
import { type Execution, isBad, isOpen } from "@/api/types";
import { useNow } from "@/time/clock";
import { duration } from "@/time/format";
import { Instant } from "@/time/Instant";
import { type Moment, momentsOf, secondsBetween } from "./life";

interface Props {
  execution: Execution;
  attempts: readonly Attempt[];
  zone: string | null;
}

/** Timeline from fire time to end, with the waiting times between. */
export function LifeLine({ execution, attempts, zone }: Props) {
  const moments = momentsOf(execution, attempts);
  const current = moments.findLastIndex((moment) => moment.at !== null);
  const isOver = !isOpen(execution.status);
  return (
    <ol className="flex flex-col @lg:flex-row">
      {moments.map((moment, index) => (
        <li
          key={moment.name}
          className="relative flex min-w-0 grow basis-0 gap-3 pb-4 last:pb-0 @lg:flex-col @lg:gap-1.5 @lg:pr-3 @lg:pb-0 @lg:last:pr-0"
        >
          {index < moments.length - 1 && (
            <span
              aria-hidden="true"
              className={`absolute top-2.5 bottom-0 left-[4.5px] w-px @lg:top-[5px] @lg:right-0 @lg:bottom-auto @lg:left-3 @lg:h-px @lg:w-auto ${index < current ? "bg-line-strong" : "border-line-strong border-l border-dashed @lg:border-t @lg:border-l-0"}`}
            />
          )}
          <Dot
            moment={moment}
            isHere={index === current && !isOver}
            isBad={isOver && index === moments.length - 1 && isBad(execution.status)}
          />
          <div className="min-w-0 -mt-1 @lg:mt-0">
            <p className={`text-xs font-medium ${moment.at === null ? "text-ink-faint" : ""}`}>
              {moment.name}
            </p>
            <p className="text-ink-soft text-xs">
              {moment.at === null ? "not yet" : <Instant at={moment.at} zone={zone} />}
            </p>
            {moment.wait !== null && (
              <p className="numbers text-ink-faint text-xs">
                <span className="sr-only">after </span>
                <span aria-hidden="true">+</span>
                {duration(moment.wait)}
              </p>
            )}
            {index === current + 1 && !isOver && <Passing since={moments[current]?.at ?? null} />}
            {moment.note && (
              <p className="text-ink-faint truncate text-xs" title={moment.note}>
                {moment.note}
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

interface DotProps {
  moment: Moment;
  isHere: boolean;
  isBad: boolean;
}

function Dot({ moment, isHere, isBad }: DotProps) {
  const look =
    moment.at === null
      ? "border-control bg-surface border-2"
      : isBad
        ? "bg-(--status-failed)"
        : isHere
          ? "bg-(--status-running) ring-busy-soft ring-4"
          : "bg-accent";
  return <span aria-hidden="true" className={`z-1 size-2.5 shrink-0 rounded-full ${look}`} />;
}

/** Time elapsed since the last moment. */
function Passing({ since }: { since: string | null }) {
  const now = useNow();
  if (since === null || Date.parse(since) > now.getTime()) {
    return null;
  }
  const seconds = secondsBetween(since, now.toISOString());
  return <p className="numbers text-busy text-xs">{duration(Math.floor(seconds))} so far</p>;
}
