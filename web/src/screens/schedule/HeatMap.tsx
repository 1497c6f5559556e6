import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { MAX_PLANNED, plannedBetween, statsOf } from "@/api/schedule-history";
import type { Schedule } from "@/api/types";
import { presently } from "@/time/clock";
import { Card } from "@/ui/Card";
import { ErrorState, Skeleton } from "@/ui/State";
import { type Cell, strengthOf, weeksOf } from "./heat";

const WEEKS_BACK = 12;
const WEEKS_AHEAD = 4;
const HOUR_MS = 3_600_000;
const AHEAD_MS = WEEKS_AHEAD * 7 * 24 * HOUR_MS + 7 * 24 * HOUR_MS;
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Calendar of twelve past weeks and a few future ones: runs, failures and planned runs per day. */
export function HeatMap({ schedule }: { schedule: Schedule }) {
  // Rounded to the hour, so that the query key stays the same while the page is open.
  const [from] = useState(() => new Date(Math.floor(presently().getTime() / HOUR_MS) * HOUR_MS));
  const stats = useQuery(statsOf(schedule.schedule_id));
  const planned = useQuery(
    plannedBetween(
      schedule.schedule_id,
      schedule.aggregate_version,
      from.toISOString(),
      new Date(from.getTime() + AHEAD_MS).toISOString(),
    ),
  );
  const weeks = useMemo(() => {
    if (stats.data === undefined) return null;
    const fires = (planned.data?.items ?? []).filter((fire) => fire.state === "planned");
    const last = fires.at(-1);
    return weeksOf({
      now: presently(),
      days: stats.data.days,
      since: new Date(stats.data.since_ts),
      planned: fires.filter((fire) => fire.reason === null).map((fire) => fire.fire_ts),
      plannedUntil: fires.length >= MAX_PLANNED && last ? new Date(last.fire_ts) : null,
      weeksBack: WEEKS_BACK,
      weeksAhead: WEEKS_AHEAD,
    });
  }, [stats.data, planned.data]);
  return (
    <Card title="Days" aside={<span className="text-ink-faint text-xs">UTC</span>}>
      <div className="px-4 pb-4">
        {weeks ? (
          <Grid weeks={weeks} />
        ) : stats.error ? (
          <ErrorState error={stats.error} onRetry={() => stats.refetch()} />
        ) : (
          <Skeleton className="h-36" />
        )}
      </div>
    </Card>
  );
}

function Grid({ weeks }: { weeks: readonly (readonly Cell[])[] }) {
  const cells = weeks.flat();
  const most = Math.max(1, ...cells.map((cell) => ("total" in cell ? cell.total : 0)));
  return (
    <div className="flex flex-col gap-2">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section aria-label="Runs by day" tabIndex={0} className="overflow-x-auto rounded">
        <table className="border-separate border-spacing-0.5">
          <caption className="sr-only">Runs of each day, twelve weeks back and four weeks ahead</caption>
          <thead>
            <tr>
              <th scope="col" className="sr-only">
                Day of the week
              </th>
              {weeks.map((week, index) => (
                <th
                  key={week[0]?.day}
                  scope="col"
                  className="text-ink-faint h-4 text-left text-[0.625rem] leading-3 font-normal whitespace-nowrap"
                >
                  <span className="sr-only">Week of {week[0]?.day}</span>
                  <span aria-hidden="true" className="block w-4 overflow-visible sm:w-5">
                    {monthMark(weeks, index)}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {DAYS.map((name, weekday) => (
              <tr key={name}>
                <th
                  scope="row"
                  className="text-ink-faint pr-1.5 text-right text-[0.625rem] leading-3 font-normal"
                >
                  <span className={weekday % 2 === 0 ? "" : "sr-only"}>{name}</span>
                </th>
                {weeks.map((week) => {
                  const cell = week[weekday];
                  return cell ? <Square key={cell.day} cell={cell} most={most} /> : null;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <Legend />
    </div>
  );
}

/** Month name above the first week of a month. */
function monthMark(weeks: readonly (readonly Cell[])[], index: number): string {
  const month = (at: number) => weeks[at]?.[0]?.day.slice(5, 7);
  const begins = month(index) !== month(index - 1);
  // The first column may be the only week of its month: too narrow for the name.
  const hasRoom = index > 0 || month(index) === month(index + 1);
  return begins && hasRoom ? (MONTHS[Number(month(index)) - 1] ?? "") : "";
}

const GOOD = [
  "bg-sunken",
  "bg-(--status-success)/25",
  "bg-(--status-success)/50",
  "bg-(--status-success)/75",
  "bg-(--status-success)",
];
const BAD = [
  "",
  "bg-(--status-failed)/40",
  "bg-(--status-failed)/60",
  "bg-(--status-failed)/80",
  "bg-(--status-failed)",
];
const PLANNED = [
  "border-line",
  "border-(--status-running)/40",
  "border-(--status-running)/60",
  "border-(--status-running)/80",
  "border-(--status-running)",
];

function Square({ cell, most }: { cell: Cell; most: number }) {
  const words = `${cell.day}: ${cell.words}`;
  return (
    <td className="p-0">
      <span
        title={words}
        className={`relative grid size-4 sm:size-5 place-items-center rounded-xs ${lookOf(cell, most)}`}
      >
        {cell.kind === "past" && cell.bad > 0 && (
          <svg
            viewBox="0 0 8 8"
            width={8}
            height={8}
            aria-hidden="true"
            className="stroke-canvas"
            fill="none"
          >
            <path d="M1.5 1.5l5 5M6.5 1.5l-5 5" strokeWidth={1.6} strokeLinecap="round" />
          </svg>
        )}
        <span className="sr-only">{words}</span>
      </span>
    </td>
  );
}

function lookOf(cell: Cell, most: number): string {
  switch (cell.kind) {
    case "unknown":
      return "border-line border border-dashed";
    case "planned":
      return `border ${PLANNED[strengthOf(cell.total, most)]}`;
    case "past":
      return cell.bad > 0
        ? (BAD[strengthOf(cell.bad, cell.total)] ?? "")
        : (GOOD[strengthOf(cell.total, most)] ?? "");
  }
}

function Legend() {
  return (
    <ul className="text-ink-soft flex flex-wrap gap-x-4 gap-y-1 text-xs" aria-hidden="true">
      <li className="flex items-center gap-1.5">
        <span className="flex gap-0.5">
          {GOOD.slice(1).map((look) => (
            <span key={look} className={`size-2.5 rounded-xs ${look}`} />
          ))}
        </span>
        runs, none bad
      </li>
      <li className="flex items-center gap-1.5">
        <span className="grid size-2.5 place-items-center rounded-xs bg-(--status-failed)" />
        some failed
      </li>
      <li className="flex items-center gap-1.5">
        <span className="size-2.5 rounded-xs border border-(--status-running)" />
        planned
      </li>
      <li className="flex items-center gap-1.5">
        <span className="border-line-strong size-2.5 rounded-xs border border-dashed" />
        not counted
      </li>
    </ul>
  );
}
