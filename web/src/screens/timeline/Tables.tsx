import { type ReactNode, useId, useMemo, useState } from "react";
import type { Timeline } from "@/api/timeline";
import { STATUSES } from "@/api/types";
import { Link } from "@/routing/Link";
import { count } from "@/time/format";
import { StatusBadge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { columnsOf, type Row, rowsOf } from "./cells";
import { wordsOf } from "./Histogram";

const FIRST_ROWS = 50;

interface Props {
  told: Timeline;
  spanOf: (bin: number) => string;
}

/** The data of the timeline as tables. */
export function Tables({ told, spanOf }: Props) {
  const [most, setMost] = useState(FIRST_ROWS);
  const rows = useMemo(() => rowsOf(told), [told]);
  const columns = useMemo(() => columnsOf(told).filter((column) => column.total > 0), [told]);
  const found = STATUSES.filter((status) => rows.some((row) => (row.byStatus[status] ?? 0) > 0));
  return (
    <div className="flex flex-col gap-6 p-4">
      <Titled title="By schedule, the busiest first">
        <table className="w-full text-sm">
          <thead className="text-ink-soft text-left text-xs">
            <tr className="border-line border-b">
              <Head>Schedule</Head>
              {found.map((status) => (
                <Head key={status} isNumber>
                  <StatusBadge status={status} />
                </Head>
              ))}
              <Head isNumber>Planned</Head>
              <Head>Busiest, of the past</Head>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((row) => (
              <tr key={row.id} className="border-line border-b last:border-b-0">
                <th scope="row" className="max-w-60 py-1.5 pr-4 text-left font-normal">
                  <Link
                    href={`/schedules/${row.id}`}
                    title={row.name}
                    className="block truncate rounded hover:underline"
                  >
                    {row.name}
                  </Link>
                </th>
                {found.map((status) => (
                  <Figure key={status} value={row.byStatus[status] ?? 0} />
                ))}
                <Figure value={row.planned} />
                <td className="text-ink-soft py-1.5 text-xs whitespace-nowrap">{peakOf(row, spanOf)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length > most && (
          <Button look="quiet" onClick={() => setMost(rows.length)}>
            {`Show more: ${rows.length - most} schedules`}
          </Button>
        )}
      </Titled>
      <Titled title="By time, all schedules">
        <table className="w-full text-sm">
          <thead className="text-ink-soft text-left text-xs">
            <tr className="border-line border-b">
              <Head>Time</Head>
              <Head isNumber>In all</Head>
              <Head>How they stand</Head>
            </tr>
          </thead>
          <tbody>
            {columns.map((column) => (
              <tr key={column.bin} className="border-line border-b last:border-b-0">
                <th scope="row" className="numbers py-1.5 pr-4 text-left font-normal whitespace-nowrap">
                  {spanOf(column.bin)}
                </th>
                <Figure value={column.total} />
                <td className="text-ink-soft py-1.5 text-xs">{wordsOf(column)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Titled>
    </div>
  );
}

function peakOf(row: Row, spanOf: (bin: number) => string): string {
  const most = Math.max(0, ...row.counts);
  if (most === 0) {
    return "";
  }
  return `${spanOf(row.counts.indexOf(most))}, ${count(most)}`;
}

function Titled({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className="mb-1.5 text-sm font-semibold">
        {title}
      </h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <div tabIndex={0} className="overflow-x-auto rounded">
        {children}
      </div>
    </section>
  );
}

function Head({ children, isNumber = false }: { children: ReactNode; isNumber?: boolean }) {
  return (
    <th
      scope="col"
      className={`py-1.5 font-medium whitespace-nowrap ${isNumber ? "pr-4 text-right" : "pr-4"}`}
    >
      {children}
    </th>
  );
}

function Figure({ value }: { value: number }) {
  return (
    <td className={`numbers py-1.5 pr-4 text-right ${value === 0 ? "text-ink-faint" : ""}`}>
      {count(value)}
    </td>
  );
}
