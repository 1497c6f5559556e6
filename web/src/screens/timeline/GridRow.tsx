import { memo } from "react";
import { isBad } from "@/api/types";
import { Link } from "@/routing/Link";
import { addressOf } from "@/routing/search";
import { shape as executionShape } from "@/screens/executions/filters";
import { count } from "@/time/format";
import { statusColour } from "@/ui/Badge";
import { type Bins, type Cell, type Row, wordsOf } from "./cells";
import { ground, PLANNED_LOOK } from "./look";

/** Width of a digit in pixels. */
const DIGIT = 6;

interface Props {
  row: Row;
  bins: Bins;
  spanOf: (bin: number) => string;
  /** The largest number in a past cell; it sets the scale of the colours. */
  most: number;
  /** Width in pixels that a cell has for its number. */
  room: number;
  /** The cell that Tab focuses (arrow keys reach the others); null: none in this row. */
  stop: number | "first" | null;
  onReach: (id: string, bin: number) => void;
}

/** The row of one schedule. */
export const GridRow = memo(function GridRow(props: Props) {
  const { row, bins, spanOf, most, room, stop, onReach } = props;
  const { name, cells } = row;
  return (
    <li className="border-line hover:bg-hover grid items-center border-t py-1 md:grid-cols-[13rem_minmax(0,1fr)] md:py-0">
      <div className="flex min-w-0 items-baseline gap-2 px-4 md:pr-3">
        <Link
          href={`/schedules/${row.id}`}
          title={name}
          className="min-w-0 truncate rounded py-0.5 text-sm hover:underline"
        >
          {name}
        </Link>
        <span
          className="numbers text-ink-faint ml-auto shrink-0 text-xs"
          title={`${row.past} past, ${row.planned} planned`}
        >
          {count(row.past + row.planned)}
        </span>
      </div>
      <div className="relative mx-4 h-7 md:mr-4 md:ml-0">
        {cells.map((cell) => (
          <CellLink
            key={cell.bin}
            cell={cell}
            count={bins.count}
            href={hrefOf(row.id, cell, bins)}
            words={`${name}, ${spanOf(cell.bin)}: ${wordsOf(cell)}`}
            most={most}
            room={room}
            isStop={stop === cell.bin || (stop === "first" && cell === cells[0])}
            onReach={() => onReach(row.id, cell.bin)}
          />
        ))}
      </div>
    </li>
  );
});

/** The link of a cell: past cells lead to the list of executions, planned ones to the schedule. */
function hrefOf(id: string, cell: Cell, bins: { from: number; width: number }): string {
  if (cell.past === 0) {
    return `/schedules/${id}`;
  }
  const at = bins.from + cell.bin * bins.width;
  return addressOf("/executions", executionShape, {
    schedule_id: [id],
    fire_from: new Date(at).toISOString(),
    fire_to: new Date(at + bins.width).toISOString(),
  });
}

interface CellProps {
  cell: Cell;
  count: number;
  href: string;
  words: string;
  most: number;
  room: number;
  isStop: boolean;
  onReach: () => void;
}

function CellLink({ cell, count: bins, href, words, most, room, isStop, onReach }: CellProps) {
  const text = short(cell.past + cell.planned);
  const isAhead = cell.past === 0;
  const wrong = cell.worst !== null && isBad(cell.worst) ? statusColour(cell.worst) : null;
  return (
    <Link
      href={href}
      tabIndex={isStop ? 0 : -1}
      onFocus={onReach}
      data-bin={cell.bin}
      title={words}
      // The accessible name contains the visible text, so that voice control can address the cell.
      aria-label={words.includes(text) ? words : `${words}; ${text} in all`}
      className={`numbers text-ink absolute text-[0.625rem] tracking-tight inset-y-0.5 grid place-items-center overflow-hidden rounded-xs hover:brightness-95 focus-visible:z-1 ${
        isAhead ? PLANNED_LOOK : ""
      }`}
      style={{
        left: `calc(${(cell.bin / bins) * 100}% + 0.5px)`,
        width: `calc(${100 / bins}% - 1px)`,
        ...(isAhead ? {} : { background: ground(cell.worst, cell.past, most) }),
        // Failures are also underlined, so that colour is not the only sign.
        ...(wrong ? { boxShadow: `inset 0 -3px 0 ${wrong}` } : {}),
      }}
    >
      {text.length * DIGIT <= room && <span className={isAhead ? "text-ink-faint" : ""}>{text}</span>}
    </Link>
  );
}

/** A number short enough for a cell: 999, 1k, 25k. */
function short(number: number): string {
  return number < 1000 ? String(number) : `${Math.floor(number / 1000)}k`;
}
