// Plots over time, drawn by uPlot. What is plotted is also told in words, and the values under the pointer are
// shown in the legend.

import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useShownTheme } from "@/settings/theme";
import { useZone } from "@/settings/zone";
import { shortClockTime } from "@/time/format";
import { stacked } from "./stacking";

export interface Series {
  label: string;
  /** A CSS colour; may be a variable. */
  colour: string;
  values: readonly (number | null)[];
}

interface Props {
  /** In words, for those who can't see it. */
  summary: string;
  /** Seconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  kind: "stacked bars" | "lines";
  /** How values are written. */
  format: (value: number) => string;
  height?: number;
}

export function Plot({ summary, times, series, kind, format, height = 168 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [under, setUnder] = useState<number | null>(null);
  const shownTheme = useShownTheme();
  const zone = useZone();
  const names = series.map((each) => `${each.label} ${each.colour}`).join("|");

  // biome-ignore lint/correctness/useExhaustiveDependencies: made anew only when what can't be changed changes
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const made = new uPlot(
      optionsOf({ element, series, kind, format, height, zone, onUnder: setUnder }),
      dataOf(times, series, kind),
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, kind, height, zone, shownTheme]);

  useEffect(() => {
    plot.current?.setData(dataOf(times, series, kind));
  }, [times, series, kind]);

  const at = under === null ? undefined : times[under];
  return (
    <figure className="flex flex-col gap-2">
      <div ref={box} role="img" aria-label={summary} className="w-full" style={{ height }} />
      <figcaption className="text-ink-soft flex flex-wrap gap-x-4 gap-y-1 text-xs">
        <span className="numbers w-10">
          {at === undefined ? "" : shortClockTime(new Date(at * 1000), zone)}
        </span>
        {series.map((each) => {
          const value = under === null ? null : (each.values[under] ?? null);
          return (
            <span key={each.label} className="inline-flex items-center gap-1.5">
              <span className="size-2 rounded-xs" style={{ background: each.colour }} />
              {each.label}
              {value !== null && <span className="numbers text-ink font-medium">{format(value)}</span>}
            </span>
          );
        })}
      </figcaption>
    </figure>
  );
}

/** Values as they are drawn: stacked ones stand on the sum of those before them, and the highest come first. */
function dataOf(times: readonly number[], series: readonly Series[], kind: Props["kind"]): uPlot.AlignedData {
  if (kind === "lines") {
    return [[...times], ...series.map((each) => [...each.values])] as uPlot.AlignedData;
  }
  return [[...times], ...stacked(series.map((each) => each.values)).toReversed()] as uPlot.AlignedData;
}

function stepOf(times: ArrayLike<number>): number {
  return times.length > 1 ? (times[1] ?? 0) - (times[0] ?? 0) : 0;
}

interface Drawn {
  element: HTMLElement;
  series: readonly Series[];
  kind: Props["kind"];
  format: (value: number) => string;
  height: number;
  zone: string;
  onUnder: (index: number | null) => void;
}

function optionsOf({ element, series, kind, format, height, zone, onUnder }: Drawn): uPlot.Options {
  const style = getComputedStyle(element);
  // A canvas knows no variables.
  const colour = (text: string) =>
    text.startsWith("var(") ? style.getPropertyValue(text.slice(4, -1)).trim() : text;
  const axis: uPlot.Axis = {
    stroke: colour("var(--ink-faint)"),
    font: `11px ${style.fontFamily}`,
    ticks: { show: false },
    grid: { stroke: colour("var(--line)"), width: 1 },
  };
  const drawn = series.map(
    (each): uPlot.Series =>
      kind === "lines"
        ? { stroke: colour(each.colour), width: 1.75, points: { show: false }, spanGaps: false }
        : {
            fill: colour(each.colour),
            width: 0,
            points: { show: false },
            ...(uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.72, 14], align: 1 }) } : {}),
          },
  );
  return {
    width: element.clientWidth,
    height,
    padding: [10, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: kind === "lines" }, drag: { x: false, y: false } },
    scales: {
      // A bar stands to the right of its time.
      x: { range: (plot, low, high) => [low, kind === "lines" ? high : high + stepOf(plot.data[0])] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        space: 56,
        values: (_plot, splits) => splits.map((each) => shortClockTime(new Date(each * 1000), zone)),
      },
      { ...axis, size: 52, space: 32, values: (_plot, splits) => splits.map((each) => format(each)) },
    ],
    series: [{}, ...(kind === "lines" ? drawn : drawn.toReversed())],
    hooks: { setCursor: [(plot) => onUnder(plot.cursor.idx ?? null)] },
  };
}
