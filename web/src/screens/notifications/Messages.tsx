import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { DELIVERIES, type Message, type MessageFilter, messageList, ruleList } from "@/api/notifications";
import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { anyOf, text, texts, useSearch, writeSearch } from "@/routing/search";
import { RelativeTime } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { Facet, FilterBar, FilterChip } from "@/ui/Filters";
import { NewsBar } from "@/ui/NewsBar";
import { EmptyState } from "@/ui/State";
import { useSteadyRows } from "@/ui/steady";
import { columnsOf, DataTable } from "@/ui/Table";
import { MessageSheet } from "./MessageSheet";
import { DELIVERY_LOOKS, scheduleNameIn, TYPE_LOOKS } from "./message-words";
import { DeliveryBadge, Panel, Subject, TypeName } from "./parts";
import { isId } from "./rule-words";
import { SendAgain } from "./SendAgain";

/** URL parameters: filters, and `message`, the id of the message whose panel is open. */
const shape = { status: anyOf(DELIVERIES), rule_id: texts(), message: text() };
const UNFILTERED = { status: [], rule_id: [] };

const column = columnsOf<Message>();
const idOf = (row: Message) => row.notification_id;
const nameOf = (row: Message) =>
  `${TYPE_LOOKS[row.type].words}, ${scheduleNameIn(row) ?? row.rule_name ?? ""}`;

const COLUMNS = column.columns([
  column.display({
    id: "status",
    header: "Status",
    meta: { className: "w-28" },
    cell: ({ row }) => <DeliveryBadge message={row.original} />,
  }),
  column.display({ id: "type", header: "What", cell: ({ row }) => <What message={row.original} /> }),
  column.display({
    id: "schedule",
    header: "Schedule",
    cell: ({ row }) => <Subject message={row.original} />,
  }),
  column.display({ id: "rule", header: "Rule", cell: ({ row }) => <RuleName message={row.original} /> }),
  column.display({
    id: "attempts",
    header: "Tries",
    meta: { className: "w-14" },
    cell: ({ row }) => <span className="numbers">{row.original.attempts}</span>,
  }),
  column.display({
    id: "error",
    header: "Last error",
    cell: ({ row }) => <LastError message={row.original} />,
  }),
  column.display({
    id: "when",
    header: "When",
    meta: { className: "w-24" },
    cell: ({ row }) => <RelativeTime at={row.original.created_ts} className="text-xs" />,
  }),
  column.display({
    id: "actions",
    header: "",
    meta: { label: "Actions", className: "w-30 text-right" },
    cell: ({ row }) => row.original.status === "dead" && <SendAgain message={row.original} />,
  }),
]);

/** List of sent messages and their delivery states. */
export function Messages() {
  const [search, setSearch] = useSearch(shape);
  const filter = useMemo<MessageFilter>(
    () => ({ status: search.status, rule_id: search.rule_id.filter(isId) }),
    [search.status, search.rule_id],
  );
  const list = useInfiniteQuery({ ...messageList(filter), placeholderData: keepPreviousData });
  const fresh = useMemo(() => list.data?.pages.flatMap((page) => page.items), [list.data]);
  const steady = useSteadyRows(fresh, idOf, `${JSON.stringify(filter)} ${list.isPlaceholderData}`);
  const isFiltered = search.status.length > 0 || search.rule_id.length > 0;

  return (
    <>
      <FilterBar
        label="Filter messages"
        search={null}
        onClear={isFiltered ? () => setSearch(UNFILTERED) : null}
      >
        <Facet
          label="Status"
          choices={DELIVERIES.map((value) => ({ value, label: DELIVERY_LOOKS[value].words }))}
          chosen={search.status}
          onChange={(status) => setSearch({ status })}
        />
        {filter.rule_id.map((id) => (
          <RuleChip
            key={id}
            id={id}
            onRemove={() => setSearch({ rule_id: search.rule_id.filter((each) => each !== id) })}
          />
        ))}
      </FilterBar>
      <Panel>
        <NewsBar steady={steady} />
        <DataTable
          label="Messages"
          columns={COLUMNS}
          rows={steady.rows}
          rowId={idOf}
          rowName={nameOf}
          gone={steady.gone}
          isLoading={list.isPending || list.isPlaceholderData}
          error={list.error}
          onRetry={() => list.refetch()}
          onOpen={(row) => setSearch({ message: row.notification_id })}
          openId={search.message}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          card={(row) => <MessageCard message={row} />}
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="No message matches">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="bell" title="Nothing was told yet">
                Messages are listed here as rules send them, with what became of each.
              </EmptyState>
            )
          }
        />
      </Panel>
      {search.message !== "" && (
        <MessageSheet key={search.message} id={search.message} onClose={() => setSearch({ message: "" })} />
      )}
    </>
  );
}

function What({ message }: { message: Message }) {
  const { search } = useLocation();
  return (
    <Link
      href={`/notifications/messages${writeSearch(shape, search, { message: message.notification_id })}`}
      className="block max-w-full min-w-0 rounded font-medium hover:underline"
    >
      <TypeName type={message.type} />
    </Link>
  );
}

export function RuleName({ message }: { message: Message }) {
  if (message.rule_name === null) {
    return <span className="text-ink-faint text-xs">deleted</span>;
  }
  return (
    <Link
      href={`/notifications/rules?rule=${message.rule_id}`}
      className="block max-w-full truncate rounded hover:underline"
      title={message.rule_name}
    >
      {message.rule_name}
    </Link>
  );
}

function LastError({ message }: { message: Message }) {
  return message.error === null ? null : (
    <span
      className={`line-clamp-2 text-xs [overflow-wrap:anywhere] ${message.status === "delivered" ? "text-ink-soft" : "text-bad"}`}
      title={message.error}
    >
      {message.error}
    </span>
  );
}

function RuleChip({ id, onRemove }: { id: string; onRemove: () => void }) {
  const rules = useQuery(ruleList);
  const known = rules.data?.find((each) => each.rule_id === id);
  return <FilterChip label={`rule ${known?.name ?? `${id.slice(0, 8)}…`}`} onRemove={onRemove} />;
}

function MessageCard({ message }: { message: Message }) {
  return (
    <div className="flex flex-col gap-1.5 text-sm">
      <div className="flex items-center gap-2">
        <DeliveryBadge message={message} />
        <RelativeTime at={message.created_ts} className="text-ink-soft ml-auto text-xs" />
      </div>
      <What message={message} />
      {message.schedule_id !== null && <Subject message={message} />}
      <span className="text-ink-soft flex min-w-0 gap-1 text-xs">
        Rule <RuleName message={message} />
      </span>
      <LastError message={message} />
      {message.status === "dead" && (
        <div>
          <SendAgain message={message} />
        </div>
      )}
    </div>
  );
}
