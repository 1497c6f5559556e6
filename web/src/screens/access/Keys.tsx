import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { type Key, keyList, useRevokeKey } from "@/api/keys";
import { useWhyNot } from "@/api/session";
import { ROLES } from "@/api/types";
import { anyOf, oneOf, text, useSearch } from "@/routing/search";
import { presently } from "@/time/clock";
import { Instant, RelativeTime } from "@/time/Instant";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { CopyButton } from "@/ui/Copy";
import { Facet, FilterBar, SearchBox, words } from "@/ui/Filters";
import { NeedsRole } from "@/ui/NeedsRole";
import { EmptyState } from "@/ui/State";
import { columnsOf, DataTable } from "@/ui/Table";
import { toast } from "@/ui/Toasts";
import { inOrder, isUsable, KEY_LOOKS, KEY_STATES, keyStateOf } from "./key-state";
import { NewKeyDialog } from "./NewKeyDialog";
import { Panel, RoleBadge } from "./parts";

const shape = {
  q: text(),
  role: anyOf(ROLES),
  state: anyOf(KEY_STATES),
  new: oneOf(["", "key"] as const, ""),
  host: text(),
};
const UNFILTERED = { q: "", role: [], state: [] };

const idOf = (row: Key) => row.key_id;
const nameOf = (row: Key) => row.name;

/** List of API keys: role, state, last use, and expiry. */
export function Keys() {
  const [search, setSearch] = useSearch(shape);
  const mayNotSee = useWhyNot("admin");
  const list = useInfiniteQuery({ ...keyList, enabled: mayNotSee === null });
  const [revoking, setRevoking] = useState<Key | null>(null);
  const rows = useMemo(() => {
    const now = presently();
    const all = list.data?.pages.flatMap((page) => page.items) ?? [];
    return inOrder(all, now).filter(
      (key) =>
        `${key.name} ${key.key_id}`.toLowerCase().includes(search.q.toLowerCase()) &&
        (search.role.length === 0 || search.role.includes(key.role)) &&
        (search.state.length === 0 || search.state.includes(keyStateOf(key, now))),
    );
  }, [list.data, search]);
  const find = useCallback((q: string) => setSearch({ q }, { replace: true }), [setSearch]);
  const isFiltered = search.q !== "" || search.role.length > 0 || search.state.length > 0;
  const columns = useMemo(() => columnsFor(setRevoking), []);

  return (
    <NeedsRole needed="admin" what="Keys" error={list.error}>
      <div className="flex flex-wrap items-start gap-2">
        <div className="min-w-0 grow">
          <FilterBar
            label="Filter keys"
            search={<SearchBox label="Name or id" value={search.q} onChange={find} />}
            onClear={isFiltered ? () => setSearch(UNFILTERED) : null}
          >
            <Facet
              label="Role"
              choices={words(ROLES)}
              chosen={search.role}
              onChange={(role) => setSearch({ role })}
            />
            <Facet
              label="State"
              choices={words(KEY_STATES)}
              chosen={search.state}
              onChange={(state) => setSearch({ state })}
            />
          </FilterBar>
        </div>
        <Button look="primary" icon="plus" onClick={() => setSearch({ new: "key" })}>
          New key
        </Button>
      </div>
      <Panel>
        <DataTable
          label="Keys"
          columns={columns}
          rows={rows}
          rowId={idOf}
          rowName={nameOf}
          isLoading={list.isPending}
          error={list.error}
          onRetry={() => list.refetch()}
          card={(row) => <KeyCard apiKey={row} onRevoke={setRevoking} />}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          empty={
            isFiltered ? (
              <EmptyState icon="search" title="No key matches">
                <Button onClick={() => setSearch(UNFILTERED)}>Show all</Button>
              </EmptyState>
            ) : (
              <EmptyState icon="access" title="There is no key besides the operator's own">
                Make one for each program and person: then each can be told apart in the audit, and revoked
                alone.
              </EmptyState>
            )
          }
        />
      </Panel>
      {search.new === "key" && (
        <NewKeyDialog hostId={search.host} onClose={() => setSearch({ new: "", host: "" })} />
      )}
      {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
    </NeedsRole>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const revoke = useRevokeKey();
  return (
    <Confirm
      title={`Revoke ${apiKey.name}?`}
      verb="Revoke"
      isDangerous
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={(reason) =>
        revoke.mutate(
          { id: apiKey.key_id, reason },
          {
            onSuccess: () => {
              toast({ tone: "good", text: `Revoked ${apiKey.name}` });
              onClose();
            },
          },
        )
      }
    >
      It stops working at once, and every browser that signed in by it is signed out. This can't be undone.
      {apiKey.last_used_ts && (
        <p className="mt-2">
          It was last used <RelativeTime at={apiKey.last_used_ts} />.
        </p>
      )}
    </Confirm>
  );
}

const column = columnsOf<Key>();

function columnsFor(onRevoke: (key: Key) => void) {
  return column.columns([
    column.display({ id: "name", header: "Name", cell: ({ row }) => <Name apiKey={row.original} /> }),
    column.display({
      id: "role",
      header: "Role",
      meta: { className: "w-28" },
      cell: ({ row }) => <RoleBadge role={row.original.role} />,
    }),
    column.display({
      id: "state",
      header: "State",
      meta: { className: "w-28" },
      cell: ({ row }) => <StateOf apiKey={row.original} />,
    }),
    column.display({
      id: "used",
      header: "Last used",
      meta: { className: "w-28" },
      cell: ({ row }) => <Used apiKey={row.original} />,
    }),
    column.display({
      id: "expires",
      header: "Expires",
      meta: { className: "w-36" },
      cell: ({ row }) => <Expires apiKey={row.original} />,
    }),
    column.display({
      id: "made",
      header: "Made",
      meta: { className: "w-40" },
      cell: ({ row }) => (
        <div className="flex min-w-0 flex-col text-xs">
          <Instant at={row.original.created_ts} />
          <span className="text-ink-soft truncate">
            {row.original.created_by && `by ${row.original.created_by}`}
          </span>
        </div>
      ),
    }),
    column.display({
      id: "actions",
      header: "",
      meta: { label: "Actions", className: "w-24 text-right" },
      cell: ({ row }) => <RevokeButton apiKey={row.original} onRevoke={onRevoke} />,
    }),
  ]);
}

function Name({ apiKey }: { apiKey: Key }) {
  return (
    <div className="min-w-0">
      <span className="block truncate font-medium" title={apiKey.name}>
        {apiKey.name}
      </span>
      <span className="text-ink-faint flex items-center text-xs">
        <code className="truncate font-mono">{apiKey.key_id}</code>
        <CopyButton text={apiKey.key_id} what="the id" className="-my-2" />
      </span>
    </div>
  );
}

function StateOf({ apiKey }: { apiKey: Key }) {
  const state = keyStateOf(apiKey, presently());
  const { tone, icon } = KEY_LOOKS[state];
  return (
    <Badge tone={tone} icon={icon}>
      {state}
    </Badge>
  );
}

function Used({ apiKey }: { apiKey: Key }) {
  return apiKey.last_used_ts ? (
    <RelativeTime at={apiKey.last_used_ts} />
  ) : (
    <span className="text-ink-faint text-xs">never</span>
  );
}

function Expires({ apiKey }: { apiKey: Key }) {
  if (apiKey.revoked_ts) {
    return (
      <span className="text-ink-soft text-xs">
        revoked <RelativeTime at={apiKey.revoked_ts} />
      </span>
    );
  }
  return apiKey.expires_ts ? (
    <div className="flex flex-col text-xs">
      <Instant at={apiKey.expires_ts} />
      <RelativeTime at={apiKey.expires_ts} className="text-ink-soft" />
    </div>
  ) : (
    <span className="text-ink-soft text-xs">never by itself</span>
  );
}

function RevokeButton({ apiKey, onRevoke }: { apiKey: Key; onRevoke: (key: Key) => void }) {
  if (!isUsable(keyStateOf(apiKey, presently()))) return null;
  return (
    <Button
      look="quiet danger"
      size="small"
      aria-label={`Revoke ${apiKey.name}`}
      onClick={() => onRevoke(apiKey)}
    >
      Revoke…
    </Button>
  );
}

function KeyCard({ apiKey, onRevoke }: { apiKey: Key; onRevoke: (key: Key) => void }) {
  return (
    <div className="flex flex-col gap-2 text-sm">
      <div className="flex items-start gap-2">
        <div className="min-w-0 grow">
          <Name apiKey={apiKey} />
        </div>
        <RevokeButton apiKey={apiKey} onRevoke={onRevoke} />
      </div>
      <div className="flex flex-wrap gap-2">
        <RoleBadge role={apiKey.role} />
        <StateOf apiKey={apiKey} />
      </div>
      <dl className="grid grid-cols-2 gap-2 text-xs">
        <div>
          <dt className="text-ink-soft">Last used</dt>
          <dd>
            <Used apiKey={apiKey} />
          </dd>
        </div>
        <div>
          <dt className="text-ink-soft">Expires</dt>
          <dd>
            <Expires apiKey={apiKey} />
          </dd>
        </div>
      </dl>
    </div>
  );
}
