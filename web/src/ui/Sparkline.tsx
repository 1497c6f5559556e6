import type { RecentExecution, Status } from "@/api/types";
import { duration } from "@/time/format";
import { statusColour } from "./Badge";

const HEIGHT = 20;
const MIN_HEIGHT = 4;
const WIDTH = 4;
const GAP = 1;

/** The height of a bar. The scale is logarithmic: one slow run must not flatten all others. */
export function barHeight(seconds: number | null, longest: number): number {
  if (seconds === null || longest <= 0) {
    return MIN_HEIGHT;
  }
  const share = Math.log1p(seconds * 1000) / Math.log1p(longest * 1000);
  return MIN_HEIGHT + (HEIGHT - MIN_HEIGHT) * Math.min(1, Math.max(0, share));
}

/** A summary in words: "18 success, 2 failed". */
export function summaryOf(statuses: readonly Status[]): string {
  const counts = new Map<Status, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([status, count]) => `${count} ${status}`);
  return parts.length === 0 ? "none yet" : parts.join(", ");
}

interface Props {
  /** Latest first, as the API returns them. */
  recent: readonly RecentExecution[];
  size?: number;
}

/** The latest executions as bars, newest on the right: the colour is the status, the height the duration. */
export function Sparkline({ recent, size = 20 }: Props) {
  const shown = recent.slice(0, size).toReversed();
  const longest = Math.max(0, ...shown.map((each) => each.duration_seconds ?? 0));
  const words = `Last ${shown.length}: ${summaryOf(shown.map((each) => each.status))}`;
  const width = size * (WIDTH + GAP) - GAP;
  return (
    <svg
      width={width}
      height={HEIGHT}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      role="img"
      aria-label={words}
      className="block"
    >
      {Array.from({ length: size - shown.length }, (_, index) => (
        <rect
          // biome-ignore lint/suspicious/noArrayIndexKey: places that are empty are all alike
          key={index}
          x={index * (WIDTH + GAP)}
          y={HEIGHT - 2}
          width={WIDTH}
          height={2}
          rx={1}
          className="fill-line-strong"
        />
      ))}
      {shown.map((each, index) => {
        const height = barHeight(each.duration_seconds, longest);
        const took = each.duration_seconds === null ? "" : `, ${duration(each.duration_seconds)}`;
        return (
          <rect
            key={each.execution_id}
            x={(size - shown.length + index) * (WIDTH + GAP)}
            y={HEIGHT - height}
            width={WIDTH}
            height={height}
            rx={1}
            style={{ fill: statusColour(each.status) }}
          >
            <title>{`${each.status}${took}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
