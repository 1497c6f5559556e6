import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { type Host, hostList, useMakeHost } from "@/api/hosts";
import { problemBesides, problemOf } from "@/api/problem";
import { useMe } from "@/api/session";
import { navigate } from "@/routing/location";
import { oneOf, useSearch } from "@/routing/search";
import { Instant } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/Copy";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { NeedsRole, useWhyNotOperator } from "@/ui/NeedsRole";
import { EmptyState } from "@/ui/State";
import { columnsOf, DataTable } from "@/ui/Table";
import { toast } from "@/ui/Toasts";
import { Panel } from "./parts";

const shape = { new: oneOf(["", "host"] as const, "") };

const column = columnsOf<Host>();
const COLUMNS = column.columns([
  column.display({ id: "name", header: "Name", cell: ({ row }) => <Name host={row.original} /> }),
  column.display({ id: "id", header: "Id", cell: ({ row }) => <Id host={row.original} /> }),
  column.display({
    id: "made",
    header: "Made",
    meta: { className: "w-40" },
    cell: ({ row }) => <Instant at={row.original.created_ts} />,
  }),
  column.display({
    id: "actions",
    header: "",
    meta: { label: "Actions", className: "w-36" },
    cell: ({ row }) => <KeyButton host={row.original} />,
  }),
]);

const idOf = (row: Host) => row.host_id;
const nameOf = (row: Host) => row.name;

/** List of hosts (tenants). A host sees nothing of the others. */
export function Hosts() {
  const [search, setSearch] = useSearch(shape);
  const mayNotSee = useWhyNotOperator();
  const list = useInfiniteQuery({ ...hostList, enabled: mayNotSee === null });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  return (
    <NeedsRole needed="the operator's key" what="Hosts" error={list.error}>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <p className="text-ink-soft mr-auto text-sm">
          A host is a tenant: its schedules, keys, secrets and calendars are its own.
        </p>
        <Button look="primary" icon="plus" onClick={() => setSearch({ new: "host" })}>
          New host
        </Button>
      </div>
      <Panel>
        <DataTable
          label="Hosts"
          columns={COLUMNS}
          rows={rows}
          rowId={idOf}
          rowName={nameOf}
          isLoading={list.isPending}
          error={list.error}
          onRetry={() => list.refetch()}
          more={
            list.hasNextPage
              ? { isLoading: list.isFetchingNextPage, load: () => void list.fetchNextPage() }
              : null
          }
          card={(row) => (
            <div className="flex flex-col gap-1 text-sm">
              <div className="flex items-center gap-2">
                <div className="min-w-0 grow">
                  <Name host={row} />
                </div>
                <KeyButton host={row} />
              </div>
              <Id host={row} />
              <span className="text-ink-soft text-xs">
                made <Instant at={row.created_ts} />
              </span>
            </div>
          )}
          empty={<EmptyState icon="cluster" title="There is no host" />}
        />
      </Panel>
      {search.new === "host" && <NewHostDialog onClose={() => setSearch({ new: "" })} />}
    </NeedsRole>
  );
}

function Name({ host }: { host: Host }) {
  const known = useMe();
  return (
    <span className="flex min-w-0 items-center gap-2">
      <span className="truncate font-medium" title={host.name}>
        {host.name}
      </span>
      {known?.host_id === host.host_id && <span className="text-ink-soft shrink-0 text-xs">yours</span>}
    </span>
  );
}

function Id({ host }: { host: Host }) {
  return (
    <span className="text-ink-soft flex items-center">
      <code className="truncate font-mono text-xs">{host.host_id}</code>
      <CopyButton text={host.host_id} what="the id" className="-my-2" />
    </span>
  );
}

function KeyButton({ host }: { host: Host }) {
  return (
    <span className="flex justify-end">
      <Button
        size="small"
        icon="access"
        aria-label={`Make a key for ${host.name}`}
        onClick={() => navigate(`/access/keys?${new URLSearchParams({ new: "key", host: host.host_id })}`)}
      >
        Make a key
      </Button>
    </span>
  );
}

function NewHostDialog({ onClose }: { onClose: () => void }) {
  const make = useMakeHost();
  const [name, setName] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (make.isPending) return;
    make.mutate(name.trim(), {
      onSuccess: (made) => {
        toast({
          tone: "good",
          text: `Made host ${made.name}`,
          action: {
            label: "Make a key for it",
            run: () => navigate(`/access/keys?${new URLSearchParams({ new: "key", host: made.host_id })}`),
          },
        });
        onClose();
      },
    });
  }
  return (
    <Dialog
      title="New host"
      description="Its first key is made with the operator's own."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          required
          maxLength={126}
          autoComplete="off"
          problem={problemOf(make.error, "/name")}
        />
        <FormProblem text={problemBesides(make.error, ["/name"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={make.isPending}>
            Make the host
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
