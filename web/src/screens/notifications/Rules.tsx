import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { latestMessages, type Message, type Rule, ruleList, useTestRule } from "@/api/notifications";
import { useWhyNot } from "@/api/session";
import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { oneOf, text, useSearch, writeSearch } from "@/routing/search";
import { RelativeTime } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/State";
import { columnsOf, DataTable } from "@/ui/Table";
import { DeleteRule } from "./DeleteRule";
import { MuteDialog } from "./MuteDialog";
import { About, DeliveryBadge, Destination, Panel } from "./parts";
import { RuleMenu } from "./RuleMenu";
import { RuleSheet } from "./RuleSheet";
import { RuleSwitch } from "./RuleSwitch";
import { conditionsWords } from "./rule-words";
import { TestDialog } from "./TestDialog";

/** URL parameters: `rule` is the rule being edited; `about` is the schedule preselected for a new rule. */
const shape = { new: oneOf(["", "rule"] as const, ""), about: text(), rule: text() };

const column = columnsOf<Rule>();
const idOf = (row: Rule) => row.rule_id;
const nameOf = (row: Rule) => row.name;

/** The open dialog. It is not part of the URL. */
type Asked = { what: "mute" | "delete" | "test"; rule: Rule };

/** List of notification rules. */
export function Rules() {
  const [search, setSearch] = useSearch(shape);
  const mayNotEdit = useWhyNot("editor");
  const list = useQuery({ ...ruleList, refetchInterval: 15_000 });
  const rows = list.data ?? [];
  const [asked, setAsked] = useState<Asked | null>(null);
  const test = useTestRule();
  const close = () => setAsked(null);
  const send = test.mutate;
  const menuOf = useCallback(
    (rule: Rule) => (
      <RuleMenu
        rule={rule}
        onEdit={() => setSearch({ rule: rule.rule_id })}
        onMute={() => setAsked({ what: "mute", rule })}
        onDelete={() => setAsked({ what: "delete", rule })}
        onTest={() => {
          setAsked({ what: "test", rule });
          send(rule.rule_id);
        }}
      />
    ),
    [setSearch, send],
  );
  const columns = useMemo(
    () =>
      column.columns([
        column.display({ id: "name", header: "Name", cell: ({ row }) => <Name rule={row.original} /> }),
        column.display({
          id: "about",
          header: "About",
          cell: ({ row }) => <About match={row.original.match} />,
        }),
        column.display({
          id: "on",
          header: "When",
          cell: ({ row }) => <Conditions rule={row.original} />,
        }),
        column.display({
          id: "to",
          header: "To",
          meta: { className: "w-40" },
          cell: ({ row }) => <Destination to={row.original.to} />,
        }),
        column.display({
          id: "state",
          header: "Enabled",
          meta: { className: "w-36" },
          cell: ({ row }) => <RuleSwitch rule={row.original} />,
        }),
        column.display({
          id: "last",
          header: "Last message",
          meta: { className: "w-32" },
          cell: ({ row }) => <LastMessage rule={row.original} />,
        }),
        column.display({
          id: "actions",
          header: "",
          meta: { label: "Actions", className: "w-14 text-right" },
          cell: ({ row }) => menuOf(row.original),
        }),
      ]),
    [menuOf],
  );

  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <p className="text-ink-soft mr-auto text-sm">
          A rule tells a webhook or a Slack channel once when something goes wrong, until it is well again.
        </p>
        <Button look="primary" icon="plus" whyNot={mayNotEdit} onClick={() => setSearch({ new: "rule" })}>
          New rule
        </Button>
      </div>
      <Panel>
        <DataTable
          label="Notification rules"
          columns={columns}
          rows={rows}
          rowId={idOf}
          rowName={nameOf}
          isLoading={list.isPending}
          error={list.error}
          onRetry={() => list.refetch()}
          onOpen={(row) => setSearch({ rule: row.rule_id })}
          openId={search.rule}
          card={(row) => <RuleCard rule={row} menu={menuOf(row)} />}
          empty={
            <EmptyState icon="bell" title="Nobody is told yet">
              <p>
                A rule tells you when a schedule fails, fails several times in a row, has had no success for
                too long, or starts too late; and when it recovers. Once each, and not while it is paused.
              </p>
              <Button
                icon="plus"
                className="mt-3"
                whyNot={mayNotEdit}
                onClick={() => setSearch({ new: "rule" })}
              >
                Make the first rule
              </Button>
            </EmptyState>
          }
        />
      </Panel>
      {search.new === "rule" && (
        <RuleSheet id={null} about={search.about} onClose={() => setSearch({ new: "", about: "" })} />
      )}
      {search.rule !== "" && search.new === "" && (
        <RuleSheet key={search.rule} id={search.rule} onClose={() => setSearch({ rule: "" })} />
      )}
      {asked?.what === "mute" && <MuteDialog rule={asked.rule} onClose={close} />}
      {asked?.what === "delete" && <DeleteRule rule={asked.rule} onClose={close} />}
      {asked?.what === "test" && <TestDialog rule={asked.rule} sent={test} onClose={close} />}
    </>
  );
}

function Name({ rule }: { rule: Rule }) {
  const { search } = useLocation();
  return (
    <div className="min-w-0">
      <Link
        href={`/notifications/rules${writeSearch(shape, search, { rule: rule.rule_id })}`}
        className="block truncate rounded font-medium hover:underline"
        title={rule.name}
      >
        {rule.name}
      </Link>
      <span className="text-ink-soft block truncate text-xs" title={rule.description}>
        {rule.description}
      </span>
    </div>
  );
}

function Conditions({ rule }: { rule: Rule }) {
  const words = conditionsWords(rule.on);
  return (
    <span className="line-clamp-3" title={words}>
      {words}
    </span>
  );
}

function LastMessage({ rule }: { rule: Rule }) {
  const latest = useQuery(latestMessages);
  const last = latest.data?.find((message: Message) => message.rule_id === rule.rule_id);
  if (last === undefined) {
    return <span className="text-ink-faint text-xs">{latest.data ? "none lately" : ""}</span>;
  }
  return (
    <Link
      href={`/notifications/messages?message=${last.notification_id}`}
      className="flex flex-col items-start gap-0.5 rounded text-xs"
    >
      <DeliveryBadge message={last} />
      <RelativeTime at={last.created_ts} className="text-ink-soft" />
    </Link>
  );
}

function RuleCard({ rule, menu }: { rule: Rule; menu: ReactNode }) {
  return (
    <div className="flex items-start gap-2 text-sm">
      <div className="flex min-w-0 grow flex-col gap-1.5">
        <Name rule={rule} />
        <About match={rule.match} />
        <Conditions rule={rule} />
        <Destination to={rule.to} />
        <div className="flex flex-wrap items-center gap-x-6 gap-y-1">
          <RuleSwitch rule={rule} />
          <LastMessage rule={rule} />
        </div>
      </div>
      <div className="shrink-0">{menu}</div>
    </div>
  );
}
