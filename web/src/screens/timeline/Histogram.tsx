import { count } from "@/time/format";
import { statusColour } from "@/ui/Badge";
import { type Column, WORST_FIRST } from "./cells";
import { PLANNED_COLOUR } from "./look";

const HEIGHT = 88;

interface Props {
  columns: readonly Column[];
  /** The time range of a column, in words. */
  spanOf: (bin: number) => string;
  /** Zoom in on a column; null: can't zoom in further. */
  onZoom: ((bin: number) => void) | null;
}

/** Executions per bin as stacked columns: past ones by status, and planned ones. */
export function Histogram({ columns, spanOf, onZoom }: Props) {
  const most = Math.max(1, ...columns.map((column) => column.total));
  return (
    <div className="relative flex items-end" style={{ height: HEIGHT }}>
      {columns.map((column) => (
        <Stack
          key={column.bin}
          column={column}
          most={most}
          words={`${spanOf(column.bin)}: ${wordsOf(column)}`}
          onZoom={onZoom}
        />
      ))}
    </div>
  );
}

interface StackProps extends Pick<Props, "onZoom"> {
  column: Column;
  most: number;
  words: string;
}

function Stack({ column, most, words, onZoom }: StackProps) {
  const bars = (
    <span className="flex w-full flex-col justify-end" style={{ height: HEIGHT }}>
      {column.planned > 0 && <Bar size={column.planned / most} colour={PLANNED_COLOUR} />}
      {WORST_FIRST.map((status) => {
        const number = column.byStatus[status] ?? 0;
        return number > 0 && <Bar key={status} size={number / most} colour={statusColour(status)} />;
      })}
    </span>
  );
  if (onZoom === null || column.total === 0) {
    return (
      <span title={words} className="h-full min-w-0 grow basis-0 px-px">
        {bars}
      </span>
    );
  }
  return (
    <button
      type="button"
      // Only for the pointer. By keyboard, users choose a range length, or read the same data in the table.
      tabIndex={-1}
      title={words}
      aria-label={`Look closer at ${words}`}
      onClick={() => onZoom(column.bin)}
      className="hover:bg-hover h-full min-w-0 grow basis-0 px-px"
    >
      {bars}
    </button>
  );
}

function Bar({ size, colour }: { size: number; colour: string }) {
  return (
    <span
      className="block w-full first:rounded-t-xs"
      style={{ height: Math.max(1.5, size * HEIGHT), background: colour }}
    />
  );
}

export function wordsOf(column: Column): string {
  const parts = WORST_FIRST.filter((status) => (column.byStatus[status] ?? 0) > 0).map(
    (status) => `${count(column.byStatus[status] ?? 0)} ${status}`,
  );
  if (column.planned > 0) parts.push(`${count(column.planned)} planned`);
  return parts.length === 0 ? "nothing" : parts.join(", ");
}
