import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { type ExecutionFilter, executionList, tellExecution, withTold } from "@/api/execution-list";
import { useTold } from "@/api/live";
import type { Told } from "@/api/stream";
import type { Execution } from "@/api/types";
import { navigate, useLocation } from "@/routing/location";
import { useSearch } from "@/routing/search";
import { ExecutionActions, nameOf } from "@/screens/execution/actions";
import { ExecutionSheet } from "@/screens/execution/ExecutionSheet";
import { Screen } from "@/shell/Screen";
import { Instant } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { useChoice } from "@/ui/choice";
import { Icon } from "@/ui/Icon";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { DataTable } from "@/ui/Table";
import { ExecutionBulkBar } from "./Bulk";
import { COLUMNS, closedAddress, ExecutionCard, panelAddress } from "./columns";
import { ExecutionFilters } from "./ExecutionFilters";
import { filterOf, isFiltered, shape, UNFILTERED, withTail } from "./filters";

const idOf = (row: Execution) => row.execution_id;

/** All executions, as they happen. */
export default function Executions() {
  const [search, setSearch] = useSearch(shape);
  const { search: address } = useLocation();
  const isFrozen = search.live === "off";
  const filter = useSameFilter(filterOf(search));
  const [turn, setTurn] = useState(0);
  const list = useInfiniteQuery({
    ...executionList(filter),
    placeholderData: keepPreviousData,
    // Frozen, it is read once and then left as it is.
    enabled: ({ state }) => !isFrozen || state.data === undefined,
  });
  const key = `${turn} ${JSON.stringify(filter)} ${list.isPlaceholderData}`;
  const known = useKnownRows(
    list.data?.pages,
    list.hasNextPage,
    (filter.schedule_id ?? []).length > 0,
    key,
    isFrozen,
  );
  const held = useSteadyRows(known, idOf, key);
  const steady = { ...held, show: useCallback(() => setTurn((before) => before + 1), []) };
  const choice = useChoice(filter);

  const open = useCallback((row: Execution) => navigate(panelAddress(address, row.execution_id)), [address]);
  const openAddress = useCallback((id: string) => panelAddress(address, id), [address]);
  const lookFurther = list.hasNextPage
    ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
    : null;

  return (
    <ExecutionActions>
      <Screen
        title="Executions"
        actions={
          <Button
            icon={isFrozen ? "play" : "pause"}
            aria-pressed={isFrozen}
            onClick={() => setSearch({ live: isFrozen ? "on" : "off" }, { replace: true })}
          >
            {isFrozen ? "Go on" : "Freeze"}
          </Button>
        }
      >
        <ExecutionFilters search={search} onChange={setSearch} />
        <div className="border-line bg-surface shadow-low relative rounded-lg border">
          {isFrozen ? (
            <FrozenBar at={list.dataUpdatedAt} onGoOn={() => setSearch({ live: "on" }, { replace: true })} />
          ) : (
            <NewsBar steady={steady} />
          )}
          <DataTable
            label="Executions"
            columns={COLUMNS}
            rows={steady.rows}
            rowId={idOf}
            rowName={rowName}
            isLoading={list.isPending || list.isPlaceholderData}
            error={list.error}
            onRetry={() => list.refetch()}
            empty={
              lookFurther ? (
                <EmptyState icon="search" title="None among the latest">
                  <Button onClick={lookFurther.load} isBusy={lookFurther.isLoading}>
                    Look further back
                  </Button>
                </EmptyState>
              ) : isFiltered(search) ? (
                <EmptyState icon="search" title="No execution matches">
                  <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
                </EmptyState>
              ) : (
                <EmptyState icon="executions" title="Nothing has run yet">
                  What becomes due is shown here as it happens.
                </EmptyState>
              )
            }
            choosing={{ chosen: choice.ids, isAll: choice.isAll, onChoose: choice.choose }}
            onOpen={open}
            openId={search.open || null}
            gone={steady.gone}
            card={(row) => <ExecutionCard execution={row} />}
            more={lookFurther}
          />
        </div>
        {choice.chosen !== null && (
          <ExecutionBulkBar
            chosen={choice.chosen}
            isAll={choice.isAll}
            rows={steady.rows}
            hasMore={list.hasNextPage || choice.ids.size < steady.rows.length}
            onAll={choice.chooseAll}
            onClear={choice.clear}
            onDone={choice.clear}
          />
        )}
      </Screen>
      {search.open !== "" && (
        <ExecutionSheet
          id={search.open}
          addressOf={openAddress}
          onClose={() => navigate(closedAddress(address))}
        />
      )}
    </ExecutionActions>
  );
}

function rowName(row: Execution): string {
  return `${nameOf(row)}, ${row.status}`;
}

/** Where the news would be: there are none while it is frozen. */
function FrozenBar({ at, onGoOn }: { at: number; onGoOn: () => void }) {
  return (
    <div role="status" className="sticky top-16 z-20 flex h-0 justify-center">
      {at > 0 && (
        <button
          type="button"
          onClick={onGoOn}
          className="animate-appear border-line-strong bg-raised text-ink shadow-high hover:bg-hover flex h-6 -translate-y-1/2 items-center gap-1.5 rounded-full border px-3 text-xs font-medium"
        >
          <Icon name="pause" size={12} />
          <span>
            As at <Instant at={new Date(at).toISOString()} /> — go on
          </span>
        </button>
      )}
    </div>
  );
}

/** Keeps the filter object while its content is equal: opening the panel makes no new filter. */
function useSameFilter(filter: ExecutionFilter): ExecutionFilter {
  const text = JSON.stringify(filter);
  return useMemo(() => JSON.parse(text) as ExecutionFilter, [text]);
}

interface Page {
  items: Execution[];
}

/** All rows that are known: those of the pages, and those that have been pushed off the last one. */
function useKnownRows(
  pages: readonly Page[] | undefined,
  hasMore: boolean,
  isByFireTime: boolean,
  key: string,
  isFrozen: boolean,
): readonly Execution[] | undefined {
  const client = useQueryClient();
  const known = useRef<{ key: string; rows: readonly Execution[] }>({ key: "", rows: [] });
  const [heard, setHeard] = useState(0);
  const listen = useCallback(
    (told: Told) => {
      if (told.kind !== "execution" || isFrozen) return;
      const id = told.data.execution_id;
      if (known.current.rows.some((row) => row.execution_id === id)) {
        const rows = known.current.rows.map((row) =>
          row.execution_id === id ? withTold(row, told.data) : row,
        );
        known.current = { ...known.current, rows };
        setHeard((before) => before + 1);
      }
      tellExecution(client, told.data);
    },
    [client, isFrozen],
  );
  useTold(listen);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was heard has changed the rows that are known
  return useMemo(() => {
    if (pages === undefined) {
      return undefined;
    }
    const fresh = pages.flatMap((page) => page.items);
    const before = known.current.key === key ? known.current.rows : [];
    const rows = hasMore ? withTail(fresh, before, isByFireTime) : fresh;
    known.current = { key, rows };
    return rows;
  }, [pages, hasMore, isByFireTime, key, heard]);
}
