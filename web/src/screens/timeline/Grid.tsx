import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Timeline } from "@/api/timeline";
import { useZone } from "@/settings/zone";
import { useNow } from "@/time/clock";
import { count, duration } from "@/time/format";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/State";
import { binsOf, columnsOf, rowsOf } from "./cells";
import { GridRow } from "./GridRow";
import { Histogram } from "./Histogram";
import { ticksOf } from "./ticks";

const FIRST_ROWS = 40;
const MORE_ROWS = 80;
/** Width of a label on the axis in pixels, with some space. */
const LABEL = 64;

interface Props {
  told: Timeline;
  spanOf: (bin: number) => string;
  onZoom: ((bin: number) => void) | null;
}

/** All schedules over time, the busiest first. */
export function Grid({ told, spanOf, onZoom }: Props) {
  const zone = useZone();
  const [axis, width] = useWidth();
  const [shown, setShown] = useState(FIRST_ROWS);
  const bins = useMemo(() => binsOf(told), [told]);
  const rows = useMemo(() => rowsOf(told), [told]);
  const columns = useMemo(() => columnsOf(told), [told]);
  const most = useMemo(() => Math.max(1, ...rows.flatMap((row) => row.counts)), [rows]);
  const ticks = useMemo(
    () => ticksOf(bins.from, bins.width, bins.count, zone, Math.max(2, Math.floor(width / LABEL))),
    [bins, zone, width],
  );
  const [stop, setStop] = useState<{ id: string; bin: number } | null>(null);
  const reach = useCallback((id: string, bin: number) => setStop({ id, bin }), []);
  const isHeld = rows.some((row) => row.id === stop?.id);
  const room = width / bins.count - 1;

  return (
    <div className="relative">
      <div className="grid md:grid-cols-[13rem_minmax(0,1fr)]">
        <div className="text-ink-soft flex justify-between gap-x-3 px-4 pt-2.5 text-xs md:flex-col md:justify-start">
          <span className="text-ink font-medium">All schedules</span>
          <span className="numbers text-ink-faint">
            up to {count(Math.max(...columns.map((column) => column.total)))} in {duration(bins.width / 1000)}
          </span>
        </div>
        <div className="relative mx-4 pt-5 md:mr-4 md:ml-0" ref={axis}>
          <Histogram columns={columns} spanOf={spanOf} onZoom={onZoom} />
          <div aria-hidden="true" className="border-line relative h-6 border-t">
            {ticks
              .filter((tick) => (1 - tick.bin / bins.count) * width > LABEL / 2)
              .map((tick) => (
                <span
                  key={tick.bin}
                  className={`numbers text-2xs absolute top-0 border-l pt-1 pl-1 ${tick.isDay ? "border-line-strong text-ink font-medium" : "border-line text-ink-faint"}`}
                  style={{ left: `${(tick.bin / bins.count) * 100}%` }}
                >
                  {tick.label}
                </span>
              ))}
          </div>
        </div>
      </div>
      {rows.length === 0 ? (
        <EmptyState icon="timeline" title="Nothing was due, and nothing is planned, in this stretch" />
      ) : (
        <ul aria-label="Schedules over time" onKeyDown={move}>
          {rows.slice(0, shown).map((row, index) => (
            <GridRow
              key={row.id}
              row={row}
              bins={bins}
              spanOf={spanOf}
              most={most}
              room={room}
              stop={isHeld ? (stop?.id === row.id ? stop.bin : null) : index === 0 ? "first" : null}
              onReach={reach}
            />
          ))}
        </ul>
      )}
      {rows.length > shown && (
        <div className="border-line flex justify-center border-t p-2">
          <Button look="quiet" onClick={() => setShown(shown + MORE_ROWS)}>
            {`Show more: ${rows.length - shown} schedules`}
          </Button>
        </div>
      )}
      <NowLine from={bins.from} length={bins.width * bins.count} />
    </div>
  );
}

/** A vertical line at the current time. */
function NowLine({ from, length }: { from: number; length: number }) {
  const share = (useNow().getTime() - from) / length;
  if (share < 0 || share > 1) {
    return null;
  }
  return (
    <div aria-hidden="true" className="pointer-events-none absolute inset-y-0 right-4 left-4 md:left-52">
      <div className="bg-brass absolute inset-y-0 w-px" style={{ left: `${share * 100}%` }}>
        <span className="bg-ink text-canvas text-2xs absolute top-0 -translate-x-1/2 rounded-b-sm px-1 leading-4 font-medium">
          now
        </span>
      </div>
    </div>
  );
}

const STEPS: Record<string, readonly [rows: number, cells: number]> = {
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
};

/** Move the focus by arrow keys: within a row to the next cell, between rows to the nearest cell. */
function move(event: KeyboardEvent<HTMLElement>) {
  const [down, right] = STEPS[event.key] ?? [0, 0];
  if (down === 0 && right === 0) {
    return;
  }
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("li")];
  const from = event.target as HTMLElement;
  const at = rows.findIndex((row) => row.contains(from));
  const bin = from.dataset.bin === undefined ? null : Number(from.dataset.bin);
  if (right !== 0) {
    const cells = rows[Math.max(at, 0)] ? cellsIn(rows[Math.max(at, 0)]) : [];
    cells[bin === null ? 0 : cells.indexOf(from) + right]?.focus();
    return;
  }
  for (let index = at < 0 ? 0 : at + down; index >= 0 && index < rows.length; index += down) {
    const cells = cellsIn(rows[index]);
    if (cells.length > 0) {
      nearest(cells, bin ?? 0)?.focus();
      return;
    }
  }
}

function cellsIn(row: HTMLElement | undefined): HTMLElement[] {
  return [...(row?.querySelectorAll<HTMLElement>("[data-bin]") ?? [])];
}

function nearest(cells: readonly HTMLElement[], bin: number): HTMLElement | undefined {
  const away = (cell: HTMLElement) => Math.abs(Number(cell.dataset.bin) - bin);
  return cells.reduce<HTMLElement | undefined>(
    (best, cell) => (best === undefined || away(cell) < away(best) ? cell : best),
    undefined,
  );
}

/** The current width of an element in pixels. */
function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return [box, width] as const;
}
