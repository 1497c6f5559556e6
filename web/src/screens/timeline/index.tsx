import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { type Timeline as Told, timeline } from "@/api/timeline";
import type { Status } from "@/api/types";
import { useSearch } from "@/routing/search";
import { useZone } from "@/settings/zone";
import { Screen } from "@/shell/Screen";
import { presently, useNow } from "@/time/clock";
import { calendarDay, count, instant, shortClockTime } from "@/time/format";
import { STATUS_LOOKS, statusColour } from "@/ui/Badge";
import { Button, IconButton } from "@/ui/Button";
import { Icon } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { useIsNarrow } from "@/ui/width";
import { busiest, columnsOf, leftOut, WORST_FIRST } from "./cells";
import { Grid } from "./Grid";
import { PLANNED_LOOK } from "./look";
import { Tables } from "./Tables";
import { closer, MEASURES, moved, type Range, rangeOf, SPANS, type Span, shape } from "./view";

/** The timeline screen: past and planned executions of all schedules over a time range. */
export default function Timeline() {
  const [view, setView] = useSearch(shape);
  const zone = useZone();
  const isNarrow = useIsNarrow();
  const range = useRange(view.span, view.from, isNarrow);
  const found = useQuery({
    ...timeline(range.from.toISOString(), range.to.toISOString(), range.bins),
    placeholderData: keepPreviousData,
  });
  const told = found.data;
  const spanOf = useSpanWords(told, zone);

  const isClosest = view.span === SPANS[0];

  return (
    <Screen
      title="Timeline"
      actions={
        <Button
          icon={view.view === "table" ? "timeline" : "form"}
          onClick={() => setView({ view: view.view === "table" ? "grid" : "table" })}
        >
          {view.view === "table" ? "As a grid" : "As a table"}
        </Button>
      }
    >
      <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
        <SpanChoice span={view.span} onChange={(span) => setView(around(range, view.from, span))} />
        <span className="flex items-center gap-1">
          <IconButton icon="left" label="Earlier" onClick={() => setView({ from: moved(range, -1) })} />
          <Button
            size="small"
            whyNot={view.from === "" ? "It follows the present." : null}
            onClick={() => setView({ from: "" })}
          >
            Now
          </Button>
          <IconButton icon="right" label="Later" onClick={() => setView({ from: moved(range, 1) })} />
        </span>
        <p role="status" className="numbers text-ink-soft text-sm">
          {rangeWords(range, zone)}
        </p>
      </div>
      {told === undefined ? (
        <div className="border-line bg-surface shadow-low rounded-lg border">
          {found.error ? (
            <ErrorState error={found.error} onRetry={() => found.refetch()} />
          ) : (
            <div className="flex flex-col gap-3 p-4">
              <Skeleton className="h-24" />
              <Skeleton className="h-64" />
            </div>
          )}
        </div>
      ) : (
        <>
          <Remarks told={told} zone={zone} spanOf={spanOf} />
          <div
            className={`border-line bg-surface shadow-low overflow-hidden rounded-lg border transition-opacity ${found.isPlaceholderData ? "opacity-60" : ""}`}
            aria-busy={found.isPlaceholderData || undefined}
          >
            {view.view === "table" ? (
              <Tables told={told} spanOf={spanOf} />
            ) : (
              <Grid
                told={told}
                spanOf={spanOf}
                onZoom={
                  isClosest
                    ? null
                    : (bin) => {
                        const at = Date.parse(told.from_ts) + (bin + 0.5) * told.bin_seconds * 1000;
                        setView(closer(range, view.span, new Date(at)));
                      }
                }
              />
            )}
          </div>
          {view.view === "grid" && <Legend told={told} />}
        </>
      )}
    </Screen>
  );
}

/** The time range to show. While it follows the current time, it moves one bin at a time. */
function useRange(span: Span, from: string, isNarrow: boolean): Range {
  const now = useNow();
  const range = rangeOf({ span, from }, now, isNarrow);
  const key = `${range.from.getTime()} ${range.to.getTime()} ${range.bin}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same object while it says the same
  return useMemo(() => range, [key]);
}

/** Change the length of the range, keeping its middle. */
function around(range: Range, from: string, span: Span) {
  if (from === "") {
    return { span };
  }
  const middle = (range.from.getTime() + range.to.getTime()) / 2;
  return { span, from: new Date(Math.max(0, middle - MEASURES[span].length / 2)).toISOString() };
}

/** Return a function that gives the time range of a bin in words: "11-16 09:30–10:00". */
function useSpanWords(told: Told | undefined, zone: string): (bin: number) => string {
  const from = told === undefined ? 0 : Date.parse(told.from_ts);
  const width = (told?.bin_seconds ?? 0) * 1000;
  return useCallback(
    (bin) => {
      const begin = new Date(from + bin * width);
      const end = new Date(from + (bin + 1) * width);
      return `${calendarDay(begin, zone).slice(5)} ${shortClockTime(begin, zone)}–${shortClockTime(end, zone)}`;
    },
    [from, width, zone],
  );
}

function rangeWords(range: Range, zone: string): string {
  const [first, last] = [calendarDay(range.from, zone), calendarDay(range.to, zone)];
  const end = `${first === last ? "" : `${last} `}${shortClockTime(range.to, zone)}`;
  return `${first} ${shortClockTime(range.from, zone)} – ${end}, ${zone}`;
}

interface SpanProps {
  span: Span;
  onChange: (span: Span) => void;
}

function SpanChoice({ span, onChange }: SpanProps) {
  return (
    <fieldset className="border-line-strong bg-surface shadow-low flex overflow-hidden rounded-md border">
      <legend className="sr-only">How much is shown</legend>
      {SPANS.map((each) => (
        <label
          key={each}
          className="border-line has-checked:bg-accent-soft has-checked:text-accent text-ink-soft hover:bg-hover has-focus-visible:outline-ring relative flex h-8 cursor-pointer items-center border-l px-2.5 text-sm font-medium first:border-l-0 has-focus-visible:outline-2 has-focus-visible:-outline-offset-2"
        >
          <input
            type="radio"
            name="span"
            className="absolute inset-0 cursor-pointer appearance-none"
            checked={span === each}
            onChange={() => onChange(each)}
          />
          {MEASURES[each].words}
        </label>
      ))}
    </fieldset>
  );
}

interface RemarksProps {
  told: Told;
  zone: string;
  spanOf: (bin: number) => string;
}

/** A summary of the timeline in a sentence, and what is missing from it. */
function Remarks({ told, zone, spanOf }: RemarksProps) {
  const columns = columnsOf(told);
  const most = busiest(columns);
  const planned = columns.reduce((total, column) => total + column.planned, 0);
  const past = columns.reduce((total, column) => total + column.total, 0) - planned;
  const hidden = leftOut(told);
  const isCut = Date.parse(told.complete_from_ts) > Date.parse(told.from_ts);
  return (
    <div className="text-ink-soft mb-3 flex flex-col gap-1 text-sm">
      <p>
        {count(past)} past, {count(planned)} planned.
        {most && (
          <>
            {" "}
            Busiest: <span className="numbers text-ink font-medium">{spanOf(most.bin)}</span> with{" "}
            {count(most.total)}.
          </>
        )}
      </p>
      {hidden > 0 && (
        <p>{`Only the busiest schedules have a row: ${count(hidden)} with fewer times are left out.`}</p>
      )}
      {(isCut || told.is_partial) && (
        <p className="text-warn flex items-start gap-1.5">
          <Icon name="warning" className="mt-0.5" />
          <span>
            {isCut &&
              `There was too much to count all of it: before ${instant(new Date(told.complete_from_ts), zone, presently())} some is missing. `}
            {told.is_partial && "Some schedules are missing in what is planned: there are too many."}
          </span>
        </p>
      )}
    </div>
  );
}

function Legend({ told }: { told: Told }) {
  const found = WORST_FIRST.filter((status) => told.bins.some((bin) => (bin.by_status[status] ?? 0) > 0));
  return (
    <ul aria-label="Legend" className="text-ink-soft mt-3 flex flex-wrap gap-x-4 gap-y-1.5 text-xs">
      {found.map((status) => (
        <LegendItem key={status} status={status} />
      ))}
      <li className="flex items-center gap-1.5">
        <span className={`size-3 rounded-xs ${PLANNED_LOOK}`} />
        planned
      </li>
      <li>A cell has the colour of the worst in it; what went wrong is underlined.</li>
    </ul>
  );
}

function LegendItem({ status }: { status: Status }) {
  return (
    <li className="flex items-center gap-1.5">
      <span className="size-3 rounded-xs" style={{ background: statusColour(status) }} />
      <Icon name={STATUS_LOOKS[status].icon} size={13} className="text-ink-faint" />
      {status}
    </li>
  );
}
