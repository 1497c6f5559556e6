import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useMemo } from "react";
import { scheduleList } from "@/api/schedules";
import { useWhyNot } from "@/api/session";
import type { ListedSchedule } from "@/api/types";
import { navigate, useLocation } from "@/routing/location";
import { useSearch } from "@/routing/search";
import { FirstSchedule } from "@/screens/FirstSchedule";
import { panelAddress, panelShape } from "@/screens/schedule/address";
import { isOneOf, kept, useKept } from "@/settings/kept";
import { Screen } from "@/shell/Screen";
import { Button, IconButton } from "@/ui/Button";
import { useChoice } from "@/ui/choice";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { DataTable } from "@/ui/Table";
import { ScheduleActions } from "./actions";
import { BulkBar } from "./Bulk";
import { COLUMNS, ScheduleCard } from "./columns";
import { filterOf, isFiltered, type Search, shape, UNFILTERED } from "./filters";
import { ScheduleFilters } from "./ScheduleFilters";
import { StatusPanel } from "./StatusPanel";

const PANEL = ["shown", "hidden"] as const;
const panel = kept<(typeof PANEL)[number]>("schedules-panel", "shown", isOneOf(PANEL));

const idOf = (row: ListedSchedule) => row.schedule_id;
const nameOf = (row: ListedSchedule) => row.name;

const Panel = lazy(() => import("@/screens/schedule/Panel"));

/** List of schedules. `isNew`: with the form for a new schedule open. */
export default function Schedules({ isNew }: { isNew: boolean }) {
  const [search, setSearch] = useSearch(shape);
  const [{ open: openId }] = useSearch(panelShape);
  const { search: address } = useLocation();
  const mayNotEdit = useWhyNot("editor");
  const hasPanel = useKept(panel) === "shown";
  const filter = useMemo(() => filterOf(search), [search]);
  const list = useInfiniteQuery({ ...scheduleList(filter, search.sort), placeholderData: keepPreviousData });
  const fresh = useMemo(() => list.data?.pages.flatMap((page) => page.items), [list.data]);
  const key = JSON.stringify([filter, search.sort, list.isPlaceholderData]);
  const steady = useSteadyRows(fresh, idOf, key);
  const choice = useChoice(filter);

  const open = useCallback(
    (row: ListedSchedule) => navigate(panelAddress(address, { open: row.schedule_id })),
    [address],
  );
  const close = useCallback(() => navigate(panelAddress(address, {})), [address]);
  const names = useMemo(() => new Map(steady.rows.map((row) => [row.schedule_id, row.name])), [steady.rows]);

  return (
    <ScheduleActions
      onDeleted={(id) => {
        steady.show();
        if (id === openId) close();
      }}
    >
      <Screen
        title="Schedules"
        actions={
          <>
            <span className="hidden xl:block">
              <IconButton
                icon="panel"
                label={hasPanel ? "Hide the status" : "Show the status"}
                aria-pressed={hasPanel}
                onClick={() => panel.set(hasPanel ? "hidden" : "shown")}
              />
            </span>
            <Button
              look="primary"
              icon="plus"
              whyNot={mayNotEdit}
              onClick={() => navigate(panelAddress(address, {}, "/schedules/new"))}
            >
              New schedule
            </Button>
          </>
        }
      >
        <div className={`grid items-start gap-4 ${hasPanel ? "xl:grid-cols-[minmax(0,1fr)_16rem]" : ""}`}>
          <div className="min-w-0">
            <ScheduleFilters search={search} onChange={setSearch} />
            <div className="border-line bg-surface shadow-low relative rounded-lg border">
              <NewsBar steady={steady} />
              <DataTable
                label="Schedules"
                columns={COLUMNS}
                rows={steady.rows}
                rowId={idOf}
                rowName={nameOf}
                isLoading={list.isPending || list.isPlaceholderData}
                error={list.error}
                onRetry={() => list.refetch()}
                empty={
                  isFiltered(search) ? (
                    <EmptyState icon="search" title="No schedule matches">
                      <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
                    </EmptyState>
                  ) : (
                    <div className="p-4">
                      <FirstSchedule />
                    </div>
                  )
                }
                sorting={{ sort: search.sort, onSort: (sort) => setSearch({ sort: sort as Search["sort"] }) }}
                choosing={{ chosen: choice.ids, isAll: choice.isAll, onChoose: choice.choose }}
                onOpen={open}
                openId={openId || null}
                gone={steady.gone}
                card={(row) => <ScheduleCard schedule={row} />}
                more={
                  list.hasNextPage
                    ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
                    : null
                }
              />
            </div>
            {choice.chosen !== null && (
              <BulkBar
                chosen={choice.chosen}
                isAll={choice.isAll}
                hasMore={list.hasNextPage || choice.ids.size < steady.rows.length}
                onAll={choice.chooseAll}
                onClear={choice.clear}
                nameOf={(id) => names.get(id)}
                onDone={() => {
                  choice.clear();
                  steady.show();
                }}
              />
            )}
          </div>
          {hasPanel && (
            <div className="hidden max-h-[calc(100dvh-5.5rem)] overflow-y-auto rounded-lg xl:sticky xl:top-17 xl:block">
              <StatusPanel />
            </div>
          )}
        </div>
      </Screen>
      {(isNew || openId !== "") && (
        <Suspense>
          <Panel isNew={isNew} />
        </Suspense>
      )}
    </ScheduleActions>
  );
}
