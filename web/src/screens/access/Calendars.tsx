import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type Calendar, calendarList } from "@/api/calendars";
import { useWhyNot } from "@/api/session";
import { Link } from "@/routing/Link";
import { navigate, useLocation } from "@/routing/location";
import { oneOf, text, useSearch, writeSearch } from "@/routing/search";
import { RelativeTime } from "@/time/Instant";
import { Button, IconButton } from "@/ui/Button";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { EmptyState } from "@/ui/State";
import { columnsOf, DataTable } from "@/ui/Table";
import { CalendarImport } from "./CalendarImport";
import { CalendarSheet } from "./CalendarSheet";
import { countryWords, weekdayWords } from "./calendar-words";
import { DeleteCalendar } from "./DeleteCalendar";
import { countDays, rangesOf } from "./days";
import { Panel } from "./parts";

/** URL parameters: `calendar` is the name of the calendar whose panel is open. */
const shape = { new: oneOf(["", "calendar", "import"] as const, ""), calendar: text() };

const column = columnsOf<Calendar>();
const nameOf = (row: Calendar) => row.name;

/** List of calendars: sets of days on which schedules do not fire. */
export function Calendars() {
  const [search, setSearch] = useSearch(shape);
  const mayNotEdit = useWhyNot("editor");
  const list = useInfiniteQuery(calendarList);
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const [deleting, setDeleting] = useState<string | null>(null);
  const columns = useMemo(
    () =>
      column.columns([
        column.display({ id: "name", header: "Name", cell: ({ row }) => <Name calendar={row.original} /> }),
        column.display({
          id: "excluded",
          header: "Excluded",
          cell: ({ row }) => <Excluded calendar={row.original} />,
        }),
        column.display({
          id: "zone",
          header: "Days of",
          meta: { className: "w-44" },
          cell: ({ row }) => <Zone calendar={row.original} />,
        }),
        column.display({
          id: "changed",
          header: "Changed",
          meta: { className: "w-36" },
          cell: ({ row }) => <Changed calendar={row.original} />,
        }),
        column.display({
          id: "actions",
          header: "",
          meta: { label: "Actions", className: "w-14 text-right" },
          cell: ({ row }) => <CalendarMenu calendar={row.original} onDelete={setDeleting} />,
        }),
      ]),
    [],
  );

  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <p className="text-ink-soft mr-auto text-sm">
          A schedule that names a calendar skips the times that fall on its days.
        </p>
        <Button icon="schedules" whyNot={mayNotEdit} onClick={() => setSearch({ new: "import" })}>
          Import a file…
        </Button>
        <Button look="primary" icon="plus" whyNot={mayNotEdit} onClick={() => setSearch({ new: "calendar" })}>
          New calendar
        </Button>
      </div>
      <Panel>
        <DataTable
          label="Calendars"
          columns={columns}
          rows={rows}
          rowId={nameOf}
          rowName={nameOf}
          isLoading={list.isPending}
          error={list.error}
          onRetry={() => list.refetch()}
          onOpen={(row) => setSearch({ calendar: row.name })}
          openId={search.calendar}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          card={(row) => (
            <div className="flex items-start gap-2 text-sm">
              <div className="flex min-w-0 grow flex-col gap-1.5">
                <Name calendar={row} />
                <Excluded calendar={row} />
                <span className="text-ink-soft text-xs">
                  Days of <Zone calendar={row} />
                </span>
              </div>
              <CalendarMenu calendar={row} onDelete={setDeleting} />
            </div>
          )}
          empty={
            <EmptyState icon="schedules" title="There is no calendar">
              Public holidays by country, days off, or the events of an iCalendar file.
            </EmptyState>
          }
        />
      </Panel>
      {search.new === "calendar" && <CalendarSheet name={null} onClose={() => setSearch({ new: "" })} />}
      {search.new === "import" && (
        <CalendarImport taken={rows.map(nameOf)} onClose={() => setSearch({ new: "" })} />
      )}
      {search.calendar !== "" && search.new === "" && (
        <CalendarSheet
          key={search.calendar}
          name={search.calendar}
          onDelete={() => setDeleting(search.calendar)}
          onClose={() => setSearch({ calendar: "" })}
        />
      )}
      {deleting !== null && (
        <DeleteCalendar
          name={deleting}
          onClose={() => setDeleting(null)}
          onDeleted={() => setSearch({ calendar: "" })}
        />
      )}
    </>
  );
}

function Name({ calendar }: { calendar: Calendar }) {
  const { search } = useLocation();
  return (
    <div className="min-w-0">
      <Link
        href={`/access/calendars${writeSearch(shape, search, { calendar: calendar.name })}`}
        className="block truncate rounded font-medium hover:underline"
      >
        {calendar.name}
      </Link>
      <span className="text-ink-soft block truncate text-xs" title={calendar.description}>
        {calendar.description}
      </span>
    </div>
  );
}

function Excluded({ calendar }: { calendar: Calendar }) {
  const days = countDays(rangesOf(calendar.days));
  const parts = [
    weekdayWords(calendar.weekdays),
    ...calendar.countries.map((each) => `holidays of ${countryWords(each)}`),
    days > 0 ? `${days.toLocaleString("en")} ${days === 1 ? "day" : "days"}` : "",
  ].filter(Boolean);
  return (
    <span className="line-clamp-2 text-sm" title={parts.join("; ")}>
      {parts.length === 0 ? <span className="text-ink-faint text-xs">nothing</span> : parts.join("; ")}
    </span>
  );
}

function Zone({ calendar }: { calendar: Calendar }) {
  return <span className="text-ink-soft text-xs">{calendar.timezone ?? "the schedule's zone"}</span>;
}

function Changed({ calendar }: { calendar: Calendar }) {
  return (
    <div className="flex min-w-0 flex-col text-xs">
      <RelativeTime at={calendar.updated_ts} />
      <span className="text-ink-soft truncate">{calendar.updated_by && `by ${calendar.updated_by}`}</span>
    </div>
  );
}

function CalendarMenu({ calendar, onDelete }: { calendar: Calendar; onDelete: (name: string) => void }) {
  const mayNotEdit = useWhyNot("editor");
  return (
    <Menu button={<IconButton icon="more" label={`Actions for ${calendar.name}`} />}>
      <MenuItem
        icon="schedules"
        onSelect={() => navigate(`/schedules?${new URLSearchParams({ calendar: calendar.name })}`)}
      >
        Schedules that use it
      </MenuItem>
      <MenuLine />
      <MenuItem icon="trash" isDangerous whyNot={mayNotEdit} onSelect={() => onDelete(calendar.name)}>
        Delete…
      </MenuItem>
    </Menu>
  );
}
