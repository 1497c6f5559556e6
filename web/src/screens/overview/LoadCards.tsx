import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { recentLoad } from "@/api/status";
import type { Minute } from "@/api/types";
import { count, duration } from "@/time/format";
import { statusColour } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { Plot } from "@/ui/Plot";
import { ErrorState, Skeleton } from "@/ui/State";
import { highest, layersOf, timesOf } from "./load";

const NONE: readonly Minute[] = [];

/** Executions per minute in the last hour, by status. */
export function LoadCard() {
  const load = useQuery(recentLoad);
  const minutes = load.data?.minutes ?? NONE;
  const drawn = useMemo(() => {
    const layers = layersOf(minutes);
    const totals = layers.map(({ status, counts }) => `${counts.reduce((a, b) => a + b, 0)} ${status}`);
    return {
      times: timesOf(minutes),
      series: layers.map(({ status, counts }) => ({
        label: status,
        colour: statusColour(status),
        values: counts,
      })),
      summary: `Executions of the last hour: ${totals.join(", ")}`,
    };
  }, [minutes]);
  return (
    <Card title="Executions per minute" aside={<Aside />}>
      <Body load={load}>
        <Plot kind="stacked bars" format={(value) => count(Math.round(value))} {...drawn} />
      </Body>
    </Card>
  );
}

/** How late executions started in the last hour. */
export function LatenessCard() {
  const load = useQuery(recentLoad);
  const minutes = load.data?.minutes ?? NONE;
  const drawn = useMemo(() => {
    const p50 = minutes.map((minute) => minute.late_p50_seconds);
    const p99 = minutes.map((minute) => minute.late_p99_seconds);
    const most = highest(p99);
    return {
      times: timesOf(minutes),
      series: [
        { label: "p50", colour: "var(--status-running)", values: p50 },
        { label: "p99", colour: "var(--brass)", values: p99 },
      ],
      summary:
        most === null
          ? "Nothing has started in the last hour"
          : `Lateness of the last hour: the highest p99 was ${duration(most)}`,
    };
  }, [minutes]);
  return (
    <Card title="Lateness" aside={<Aside text="from fire time to start" />}>
      <Body load={load}>
        <Plot kind="lines" format={(value) => (value === 0 ? "0" : duration(value))} {...drawn} />
      </Body>
    </Card>
  );
}

function Aside({ text = "last hour" }: { text?: string }) {
  return <span className="text-ink-faint text-xs">{text}</span>;
}

interface BodyProps {
  load: { data?: unknown; error: unknown; refetch: () => void };
  children: React.ReactNode;
}

function Body({ load, children }: BodyProps) {
  if (load.data === undefined) {
    return load.error ? (
      <ErrorState error={load.error} onRetry={load.refetch} />
    ) : (
      <div className="p-4">
        <Skeleton className="h-44" />
      </div>
    );
  }
  return <div className="px-3 pb-3">{children}</div>;
}
