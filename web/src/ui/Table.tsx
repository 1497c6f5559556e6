// Tables whose rows can be sorted, selected and opened.
//
//     const column = columnsOf<Schedule>();
//     const COLUMNS = column.columns([column.display({ id: "name", header: "Name", cell: … })]);
//     <DataTable label="Schedules" columns={COLUMNS} rows={rows} rowId={…} rowName={…} … />
//
// Keyboard: Tab moves to the table, arrows move between rows, Enter opens a row, Space selects it. A click on
// a checkbox with Shift selects a range. On narrow screens each row becomes a card if `card` is given.

import {
  type ColumnDef,
  createColumnHelper,
  metaHelper,
  type RowSelectionState,
  rowSelectionFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import { Button } from "./Button";
import { Checkbox } from "./Checkbox";
import { Icon } from "./Icon";
import { ErrorState, Skeleton } from "./State";
import { useIsNarrow } from "./width";

interface ColumnMeta {
  /** The API's sort key; left out: the column can't be sorted. */
  sort?: string;
  /** CSS classes of the cells: width, and when the column is hidden. */
  className?: string;
  /** Accessible name of a header without text. */
  label?: string;
}

const features = tableFeatures({ rowSelectionFeature, columnMeta: metaHelper<ColumnMeta>() });
type Features = typeof features;

export function columnsOf<Row extends object>() {
  return createColumnHelper<Features, Row>();
}

// biome-ignore lint/suspicious/noExplicitAny: each column has a value of a type of its own
export type Columns<Row extends object> = readonly ColumnDef<Features, Row, any>[];

export interface Sorting {
  /** In the API's form: `name`, or `-name` for descending order. */
  sort: string;
  onSort: (sort: string) => void;
}

export interface Choosing {
  chosen: ReadonlySet<string>;
  /** Whether all rows that match the filter are selected, also those that are not loaded. */
  isAll: boolean;
  onChoose: (chosen: ReadonlySet<string>) => void;
}

interface Props<Row extends object> {
  label: string;
  columns: Columns<Row>;
  rows: readonly Row[];
  rowId: (row: Row) => string;
  rowName: (row: Row) => string;
  isLoading?: boolean;
  error?: unknown;
  onRetry?: () => void;
  /** Shown if there are no rows. */
  empty: ReactNode;
  sorting?: Sorting;
  choosing?: Choosing;
  onOpen?: (row: Row) => void;
  /** The row whose panel is open. */
  openId?: string | null;
  /** Ids of rows that no longer exist. */
  gone?: ReadonlySet<string>;
  card?: (row: Row) => ReactNode;
  more?: { isLoading: boolean; load: () => void } | null;
}

export function DataTable<Row extends object>(props: Props<Row>) {
  const { rows, isLoading = false, error, onRetry, empty, card, more = null } = props;
  const isNarrow = useIsNarrow();
  if (rows.length === 0) {
    if (error) return <ErrorState error={error} onRetry={onRetry} />;
    if (!isLoading) return empty;
  }
  return (
    <>
      {isNarrow && card ? <Cards {...props} card={card} /> : <Grid {...props} />}
      {more !== null && (
        <div className="border-line flex justify-center border-t p-2">
          <Button look="quiet" onClick={more.load} isBusy={more.isLoading}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

const SKELETON_ROWS = 8;

function Grid<Row extends object>({
  label,
  columns,
  rows,
  rowId,
  rowName,
  isLoading = false,
  sorting,
  choosing,
  onOpen,
  openId = null,
  gone,
}: Props<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [activeId, setActiveId] = useState<string | null>(null);
  const selection = selectionOf(choosing, rows, rowId);
  const table = useTable({
    features,
    columns: columns as ColumnDef<Features, Row>[],
    data: rows as Row[],
    getRowId: rowId,
    state: { rowSelection: selection },
    onRowSelectionChange: (updater) => {
      const made = typeof updater === "function" ? updater(selection) : updater;
      choosing?.onChoose(new Set(Object.keys(made).filter((id) => made[id])));
    },
  });
  const shown = table.getRowModel().rows;
  const tabStop = shown.some((row) => row.id === activeId) ? activeId : shown[0]?.id;

  function move(event: KeyboardEvent<HTMLTableSectionElement>) {
    const target = event.target as HTMLElement;
    if (target.dataset.row === undefined) {
      return; // the key belongs to an element within the row
    }
    const at = shown.findIndex((row) => row.id === target.dataset.row);
    const row = shown[at];
    const goal = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (goal !== undefined) {
      event.preventDefault();
      const next = shown[Math.min(Math.max(goal, 0), shown.length - 1)];
      if (next !== undefined)
        body.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(next.id)}"]`)?.focus();
    } else if (event.key === "Enter" && row && onOpen) {
      event.preventDefault();
      onOpen(row.original);
    } else if (event.key === " " && row && choosing) {
      event.preventDefault();
      row.toggleSelected();
    }
  }

  return (
    <div className="overflow-x-auto">
      <table
        className="w-full min-w-[52rem] table-fixed text-sm"
        aria-label={label}
        aria-busy={isLoading || undefined}
      >
        <thead className="text-ink-soft text-left text-xs">
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} className="border-line border-b">
              {choosing && (
                <th scope="col" className="w-9 py-2 pl-4 align-middle">
                  <Checkbox
                    label={`Choose all ${rows.length} shown`}
                    isChecked={rows.length > 0 && (choosing.isAll || table.getIsAllRowsSelected())}
                    isPartly={!choosing.isAll && table.getIsSomeRowsSelected()}
                    onClick={() => table.toggleAllRowsSelected()}
                  />
                </th>
              )}
              {group.headers.map((header) => {
                const meta = header.column.columnDef.meta;
                return (
                  <th
                    key={header.id}
                    scope="col"
                    aria-sort={sortOf(meta?.sort, sorting)}
                    className={`px-2 py-2 font-medium whitespace-nowrap first:pl-4 last:pr-3 ${meta?.className ?? ""}`}
                  >
                    {meta?.label && <span className="sr-only">{meta.label}</span>}
                    {meta?.sort && sorting ? (
                      <SortButton by={meta.sort} sorting={sorting}>
                        <table.FlexRender header={header} />
                      </SortButton>
                    ) : (
                      <table.FlexRender header={header} />
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body} onKeyDown={move}>
          {isLoading && rows.length === 0
            ? Array.from({ length: SKELETON_ROWS }, (_, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: rows to come are all alike
                <SkeletonRow key={index} columns={columns.length + (choosing ? 1 : 0)} />
              ))
            : shown.map((row) => {
                const isGone = gone?.has(row.id) ?? false;
                const isChosen = choosing !== undefined && (choosing.isAll || row.getIsSelected());
                return (
                  <tr
                    key={row.id}
                    data-row={row.id}
                    tabIndex={row.id === tabStop ? 0 : -1}
                    aria-selected={choosing ? isChosen : undefined}
                    onFocus={(event) => event.target === event.currentTarget && setActiveId(row.id)}
                    onClick={(event) => {
                      if (onOpen && isPlain(event.target as HTMLElement)) onOpen(row.original);
                    }}
                    className={`border-line group/row border-b transition-colors last:border-b-0 focus-visible:-outline-offset-2 ${
                      isChosen || row.id === openId ? "bg-picked" : "hover:bg-hover"
                    } ${isGone ? "opacity-45" : ""} ${onOpen ? "cursor-default" : ""}`}
                  >
                    {choosing && (
                      <td className="w-9 py-2 pl-4 align-middle">
                        <Checkbox
                          label={`Choose ${rowName(row.original)}`}
                          isChecked={isChosen}
                          onClick={row.getToggleSelectedHandler()}
                        />
                      </td>
                    )}
                    {row.getAllCells().map((cell) => (
                      <td
                        key={cell.id}
                        className={`px-2 py-2 align-middle first:pl-4 last:pr-3 ${cell.column.columnDef.meta?.className ?? ""}`}
                      >
                        <table.FlexRender cell={cell} />
                      </td>
                    ))}
                  </tr>
                );
              })}
        </tbody>
      </table>
    </div>
  );
}

function Cards<Row extends object>({
  label,
  rows,
  rowId,
  rowName,
  isLoading = false,
  choosing,
  gone,
  card,
}: Props<Row> & { card: (row: Row) => ReactNode }) {
  if (isLoading && rows.length === 0) {
    return (
      <div className="flex flex-col gap-3 p-4">
        {Array.from({ length: 4 }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: cards to come are all alike
          <Skeleton key={index} className="h-24" />
        ))}
      </div>
    );
  }
  return (
    <ul aria-label={label} className="divide-line divide-y">
      {rows.map((row) => {
        const id = rowId(row);
        const isChosen = choosing !== undefined && (choosing.isAll || choosing.chosen.has(id));
        return (
          <li
            key={id}
            className={`flex gap-3 px-4 py-3 ${isChosen ? "bg-picked" : ""} ${gone?.has(id) ? "opacity-45" : ""}`}
          >
            {choosing && (
              <div className="pt-0.5">
                <Checkbox
                  label={`Choose ${rowName(row)}`}
                  isChecked={isChosen}
                  onClick={() => {
                    const made = new Set(choosing.chosen);
                    if (!made.delete(id)) made.add(id);
                    choosing.onChoose(made);
                  }}
                />
              </div>
            )}
            <div className="min-w-0 grow">{card(row)}</div>
          </li>
        );
      })}
    </ul>
  );
}

function selectionOf<Row>(
  choosing: Choosing | undefined,
  rows: readonly Row[],
  rowId: (row: Row) => string,
): RowSelectionState {
  if (choosing === undefined) {
    return {};
  }
  const ids = choosing.isAll ? rows.map(rowId) : choosing.chosen;
  return Object.fromEntries([...ids].map((id) => [id, true]));
}

/** Whether a click was on the row itself, not on a control in it, and selected no text. */
function isPlain(element: HTMLElement): boolean {
  const hasUse = element.closest("a, button, input, label, select, [role=menu]") !== null;
  return !hasUse && (window.getSelection()?.toString() ?? "") === "";
}

// --- sorting ---------------------------------------------------------------------------------------------

function sortOf(
  by: string | undefined,
  sorting: Sorting | undefined,
): "ascending" | "descending" | undefined {
  if (by === undefined || sorting === undefined) return undefined;
  if (sorting.sort === by) return "ascending";
  return sorting.sort === `-${by}` ? "descending" : undefined;
}

function SortButton({ by, sorting, children }: { by: string; sorting: Sorting; children: ReactNode }) {
  const direction = sortOf(by, sorting);
  return (
    <button
      type="button"
      onClick={() => sorting.onSort(direction === "ascending" ? `-${by}` : by)}
      className={`hover:text-ink -mx-1 inline-flex items-center gap-1 rounded px-1 ${direction ? "text-ink" : ""}`}
    >
      {children}
      <Icon
        name={direction === "ascending" ? "up" : direction === "descending" ? "down" : "sort"}
        size={12}
        className={direction ? "" : "opacity-50"}
      />
    </button>
  );
}

function SkeletonRow({ columns }: { columns: number }) {
  return (
    <tr className="border-line border-b last:border-b-0">
      {Array.from({ length: columns }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: cells to come are all alike
        <td key={index} className="px-2 py-3.5 first:pl-4">
          <Skeleton className="h-4" />
        </td>
      ))}
    </tr>
  );
}
