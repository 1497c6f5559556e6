import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useId, useMemo } from "react";
import { type AuditRecord, type AuditWanted, auditList } from "@/api/audit";
import { useWhyNot } from "@/api/session";
import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { anyOf, text, texts, useSearch, type Values, writeSearch } from "@/routing/search";
import { Instant, RelativeTime } from "@/time/Instant";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Facet, FilterBar, FilterChip, SearchBox } from "@/ui/Filters";
import { NeedsRole } from "@/ui/NeedsRole";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { AuditSheet } from "./AuditSheet";
import {
  ACTIONS,
  actionLooks,
  asInstant,
  asLocal,
  nameOfResource,
  RESOURCE_TYPES,
  typeWords,
} from "./audit-words";
import { changesBetween } from "./diff";
import { Panel } from "./parts";
import { ResourceName } from "./ResourceName";

/** URL parameters: filters, and `record`, the id of the record whose panel is open. */
const shape = {
  actor: text(),
  action: anyOf(ACTIONS),
  resource_type: anyOf(RESOURCE_TYPES),
  resource_id: texts(),
  from: text(),
  to: text(),
  record: text(),
};
type Search = Values<typeof shape>;
const UNFILTERED: Partial<Search> = {
  actor: "",
  action: [],
  resource_type: [],
  resource_id: [],
  from: "",
  to: "",
};

function wantedOf(search: Search): AuditWanted {
  return {
    ...(search.actor === "" ? {} : { actor: [search.actor] }),
    ...(search.action.length === 0 ? {} : { action: [...search.action] }),
    ...(search.resource_type.length === 0 ? {} : { resource_type: [...search.resource_type] }),
    ...(search.resource_id.length === 0 ? {} : { resource_id: [...search.resource_id] }),
    ...(asLocal(search.from) === "" ? {} : { from_ts: search.from }),
    ...(asLocal(search.to) === "" ? {} : { to_ts: search.to }),
  };
}

const column = columnsOf<AuditRecord>();
const COLUMNS = column.columns([
  column.display({
    id: "when",
    header: "When",
    meta: { className: "w-32" },
    cell: ({ row }) => <When record={row.original} />,
  }),
  column.display({
    id: "who",
    header: "Who",
    meta: { className: "w-44" },
    cell: ({ row }) => <Who record={row.original} />,
  }),
  column.display({
    id: "what",
    header: "Did",
    meta: { className: "w-32" },
    cell: ({ row }) => <Action action={row.original.action} />,
  }),
  column.display({ id: "on", header: "To", cell: ({ row }) => <On record={row.original} /> }),
  column.display({ id: "changed", header: "Changed", cell: ({ row }) => <Changed record={row.original} /> }),
  column.display({ id: "why", header: "Why", cell: ({ row }) => <Why record={row.original} /> }),
]);

const idOf = (row: AuditRecord) => row.audit_id;
const nameOf = (row: AuditRecord) => `${row.action} ${nameOfResource(row)}`;

/** Audit log: who did what, when, to which resource, and why. */
export function Audit() {
  const [search, setSearch] = useSearch(shape);
  const mayNotSee = useWhyNot("admin");
  const wanted = useMemo(() => wantedOf(search), [search]);
  const list = useInfiniteQuery({
    ...auditList(wanted),
    enabled: mayNotSee === null,
    placeholderData: keepPreviousData,
  });
  const fresh = useMemo(() => list.data?.pages.flatMap((page) => page.items), [list.data]);
  const steady = useSteadyRows(fresh, idOf, JSON.stringify([wanted, list.isPlaceholderData]));
  const find = useCallback((actor: string) => setSearch({ actor }, { replace: true }), [setSearch]);
  const isFiltered = Object.keys(wanted).length > 0;

  return (
    <NeedsRole needed="admin" what="The audit" error={list.error}>
      <FilterBar
        label="Filter the audit"
        search={<SearchBox label="Who, by the whole name" value={search.actor} onChange={find} />}
        onClear={isFiltered ? () => setSearch(UNFILTERED) : null}
      >
        <Facet
          label="Action"
          choices={ACTIONS.map((value) => ({ value, label: wordsOf(value) }))}
          chosen={search.action}
          onChange={(action) => setSearch({ action })}
        />
        <Facet
          label="Resource"
          choices={RESOURCE_TYPES.map((value) => ({ value, label: typeWords(value) }))}
          chosen={search.resource_type}
          onChange={(resource_type) => setSearch({ resource_type })}
        />
        <TimeField
          label="From"
          value={search.from}
          onChange={(from) => setSearch({ from }, { replace: true })}
        />
        <TimeField label="To" value={search.to} onChange={(to) => setSearch({ to }, { replace: true })} />
        {search.resource_id.map((id) => (
          <FilterChip
            key={id}
            label={`of ${id}`}
            onRemove={() => setSearch({ resource_id: search.resource_id.filter((each) => each !== id) })}
          />
        ))}
      </FilterBar>
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Audit"
          columns={COLUMNS}
          rows={steady.rows}
          gone={steady.gone}
          rowId={idOf}
          rowName={nameOf}
          isLoading={list.isPending || list.isPlaceholderData}
          error={list.error}
          onRetry={() => list.refetch()}
          onOpen={(row) => setSearch({ record: row.audit_id })}
          openId={search.record}
          card={(row) => <RecordCard record={row} />}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="Nothing like that was done">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="form" title="Nothing was done yet">
                What is done here from now on is kept for FOLIOT_RETENTION_DAYS.
              </EmptyState>
            )
          }
        />
      </Panel>
      {search.record !== "" && (
        <AuditSheet
          id={search.record}
          known={fresh?.find((each) => each.audit_id === search.record)}
          onClose={() => setSearch({ record: "" })}
        />
      )}
    </NeedsRole>
  );
}

function wordsOf(action: string): string {
  const { verb } = actionLooks(action);
  return `${typeWords(action.split(".")[0] ?? "")} ${verb}`;
}

interface TimeFieldProps {
  label: string;
  value: string;
  onChange: (instant: string) => void;
}

/** Date-time input in the reader's time zone. The URL holds the instant in UTC. */
function TimeField({ label, value, onChange }: TimeFieldProps) {
  const id = useId();
  return (
    <span className="flex shrink-0 items-center gap-1.5">
      <label htmlFor={id} className="text-ink-soft text-sm">
        {label}
      </label>
      <input
        id={id}
        type="datetime-local"
        title="In your time zone"
        value={asLocal(value)}
        onChange={(event) => onChange(asInstant(event.target.value))}
        className="border-line-strong bg-surface h-8 rounded-md border px-2 text-sm shadow-low"
      />
    </span>
  );
}

function When({ record }: { record: AuditRecord }) {
  const { search } = useLocation();
  return (
    <Link
      href={`/access/audit${writeSearch(shape, search, { record: record.audit_id })}`}
      className="flex flex-col rounded text-xs hover:underline"
    >
      <Instant at={record.audit_ts} />
      <RelativeTime at={record.audit_ts} className="text-ink-soft" />
    </Link>
  );
}

function Who({ record }: { record: AuditRecord }) {
  return (
    <div className="min-w-0">
      <span className="block truncate font-medium" title={record.actor ?? undefined}>
        {record.actor ?? "nobody"}
      </span>
      <span
        className="text-ink-faint block truncate font-mono text-xs"
        title={record.credential ?? undefined}
      >
        {record.credential}
      </span>
    </div>
  );
}

export function Action({ action }: { action: string }) {
  const { verb, tone, icon } = actionLooks(action);
  return (
    <Badge tone={tone} icon={icon}>
      {verb}
    </Badge>
  );
}

function On({ record }: { record: AuditRecord }) {
  return (
    <div className="min-w-0">
      <ResourceName record={record} />
      <span className="text-ink-soft block truncate text-xs">{typeWords(record.resource_type)}</span>
    </div>
  );
}

/** Paths of the changed fields. Empty for created and deleted resources: every field would be listed. */
function Changed({ record }: { record: AuditRecord }) {
  const words = useMemo(() => {
    if (record.before === null || record.after === null) return "";
    return changesBetween(record.before, record.after)
      .map((change) => change.path)
      .join(", ");
  }, [record]);
  return (
    <span className="text-ink-soft block truncate font-mono text-xs" title={words}>
      {words}
    </span>
  );
}

function Why({ record }: { record: AuditRecord }) {
  return (
    <span className="line-clamp-2 text-sm break-words" title={record.reason ?? undefined}>
      {record.reason}
    </span>
  );
}

function RecordCard({ record }: { record: AuditRecord }) {
  return (
    <div className="flex flex-col gap-1.5 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <On record={record} />
        </div>
        <Action action={record.action} />
      </div>
      <div className="grid grid-cols-2 gap-2">
        <Who record={record} />
        <When record={record} />
      </div>
      <Changed record={record} />
      {record.reason && <Why record={record} />}
    </div>
  );
}
