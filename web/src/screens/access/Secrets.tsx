import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { problemBesides, problemOf } from "@/api/problem";
import { type Secret, secretList, useDeleteSecret, useRotateSecrets, useSetSecret } from "@/api/secrets";
import { useWhyNot } from "@/api/session";
import { oneOf, text, useSearch } from "@/routing/search";
import { Instant, RelativeTime } from "@/time/Instant";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { CopyButton } from "@/ui/Copy";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextArea, TextField } from "@/ui/Field";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { NeedsRole, useWhyNotOperator } from "@/ui/NeedsRole";
import { EmptyState } from "@/ui/State";
import { Switch } from "@/ui/Switch";
import { columnsOf, DataTable } from "@/ui/Table";
import { toast } from "@/ui/Toasts";
import { Explained, Panel } from "./parts";

/** URL parameters: `set` is the name of the secret whose value is being replaced. */
const shape = { new: oneOf(["", "secret"] as const, ""), set: text() };

const MAX_VALUE = 32 * 1024;
const column = columnsOf<Secret>();
const nameOf = (row: Secret) => row.name;

function referenceTo(name: string): string {
  return `\${secret:${name}}`;
}

/** List of secrets by name. Values can be written, but are never shown. */
export function Secrets() {
  const [search, setSearch] = useSearch(shape);
  const mayNotSee = useWhyNot("admin");
  const mayNotRotate = useWhyNotOperator();
  const list = useInfiniteQuery({ ...secretList, enabled: mayNotSee === null });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const [deleting, setDeleting] = useState<Secret | null>(null);
  const [isRotating, setRotating] = useState(false);
  const columns = useMemo(
    () =>
      column.columns([
        column.display({
          id: "name",
          header: "Name",
          cell: ({ row }) => <span className="block truncate font-medium">{row.original.name}</span>,
        }),
        column.display({
          id: "reference",
          header: "Referred to as",
          cell: ({ row }) => <Reference name={row.original.name} />,
        }),
        column.display({
          id: "value",
          header: "Value",
          meta: { className: "w-36" },
          cell: () => <Hidden />,
        }),
        column.display({
          id: "changed",
          header: "Last set",
          meta: { className: "w-40" },
          cell: ({ row }) => <Changed secret={row.original} />,
        }),
        column.display({
          id: "actions",
          header: "",
          meta: { label: "Actions", className: "w-14 text-right" },
          cell: ({ row }) => (
            <SecretMenu
              secret={row.original}
              onSet={() => setSearch({ set: row.original.name })}
              onDelete={() => setDeleting(row.original)}
            />
          ),
        }),
      ]),
    [setSearch],
  );

  return (
    <NeedsRole needed="admin" what="Secrets" error={list.error}>
      <div className="grid items-start gap-4 2xl:grid-cols-[minmax(0,1fr)_22rem]">
        <div className="flex min-w-0 flex-col gap-3">
          <div className="flex flex-wrap justify-end gap-2">
            <Button icon="retry" whyNot={mayNotRotate} onClick={() => setRotating(true)}>
              Encrypt anew…
            </Button>
            <Button look="primary" icon="plus" onClick={() => setSearch({ new: "secret" })}>
              Set a secret
            </Button>
          </div>
          <Panel>
            <DataTable
              label="Secrets"
              columns={columns}
              rows={rows}
              rowId={nameOf}
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
                <div className="flex items-start gap-2 text-sm">
                  <div className="min-w-0 grow">
                    <span className="block truncate font-medium">{row.name}</span>
                    <Reference name={row.name} />
                    <span className="text-ink-soft text-xs">
                      set <RelativeTime at={row.updated_ts} />
                    </span>
                  </div>
                  <SecretMenu
                    secret={row}
                    onSet={() => setSearch({ set: row.name })}
                    onDelete={() => setDeleting(row)}
                  />
                </div>
              )}
              empty={
                <EmptyState icon="access" title="No secret is set">
                  Tokens and passwords that targets need are kept here, and not in schedules.
                </EmptyState>
              }
            />
          </Panel>
        </div>
        <Explained title="How secrets are used">
          <p>
            Write <code className="text-ink font-mono text-xs">{referenceTo("name")}</code> in the URL, the
            headers, the body or the arguments of a target. The value is put there when it runs, and nowhere
            else: schedules, versions, the audit and exports keep the name.
          </p>
          <p>
            Values are kept encrypted under FOLIOT_SECRET_KEY, can be replaced and deleted, and never read.
            What is not set here is looked for in FOLIOT_SECRET_VALUE_<i>NAME</i>, then in a file of
            FOLIOT_SECRETS_DIR.
          </p>
        </Explained>
      </div>
      {search.new === "secret" && <SetDialog name={null} onClose={() => setSearch({ new: "" })} />}
      {search.set !== "" && search.new === "" && (
        <SetDialog key={search.set} name={search.set} onClose={() => setSearch({ set: "" })} />
      )}
      {deleting && <DeleteDialog secret={deleting} onClose={() => setDeleting(null)} />}
      {isRotating && <RotateDialog onClose={() => setRotating(false)} />}
    </NeedsRole>
  );
}

function Reference({ name }: { name: string }) {
  return (
    <span className="text-ink-soft flex items-center">
      <code className="truncate font-mono text-xs">{referenceTo(name)}</code>
      <CopyButton text={referenceTo(name)} what="the reference" className="-my-2" />
    </span>
  );
}

function Hidden() {
  return (
    <span className="text-ink-faint text-xs">
      <span aria-hidden="true">•••••••• </span>
      never shown
    </span>
  );
}

function Changed({ secret }: { secret: Secret }) {
  return (
    <div className="flex flex-col text-xs">
      <Instant at={secret.updated_ts} />
      <RelativeTime at={secret.updated_ts} className="text-ink-soft" />
    </div>
  );
}

interface MenuProps {
  secret: Secret;
  onSet: () => void;
  onDelete: () => void;
}

function SecretMenu({ secret, onSet, onDelete }: MenuProps) {
  return (
    <Menu button={<IconButton icon="more" label={`Actions for ${secret.name}`} />}>
      <MenuItem icon="edit" onSelect={onSet}>
        Set a new value…
      </MenuItem>
      <MenuLine />
      <MenuItem icon="trash" isDangerous onSelect={onDelete}>
        Delete…
      </MenuItem>
    </Menu>
  );
}

/** Dialog to set a secret. `name`: the secret to replace. Null: a new secret. */
function SetDialog({ name: fixed, onClose }: { name: string | null; onClose: () => void }) {
  const set = useSetSecret();
  const [name, setName] = useState(fixed ?? "");
  const [value, setValue] = useState("");
  const [isShown, setShown] = useState(false);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (set.isPending) return;
    set.mutate(
      { name: name.trim(), value },
      {
        onSuccess: () => {
          toast({ tone: "good", text: `Set ${name.trim()}` });
          onClose();
        },
      },
    );
  }

  return (
    <Dialog
      title={fixed === null ? "Set a secret" : `Set ${fixed}`}
      description={
        fixed === null
          ? "A name that there is gets the new value."
          : "The new value replaces the old one from the next run on."
      }
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4" autoComplete="off">
        {fixed === null && (
          <TextField
            label="Name"
            hint={`Referred to as ${referenceTo(name.trim() || "name")}`}
            value={name}
            onChange={setName}
            required
            maxLength={126}
            autoComplete="off"
            spellCheck={false}
            problem={problemOf(set.error, "/name")}
          />
        )}
        <TextArea
          label="Value"
          hint="Line ends at its end count as well."
          value={value}
          onChange={setValue}
          required
          rows={3}
          maxLength={MAX_VALUE}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          className={`font-mono ${isShown ? "" : "[-webkit-text-security:disc]"}`}
          problem={problemOf(set.error, "/value")}
        />
        <span className="-mt-2 flex items-center gap-2 text-sm">
          <Switch label="Show the value while typing" isOn={isShown} onChange={setShown} />
          Show it while typing
        </span>
        <FormProblem text={problemBesides(set.error, ["/name", "/value"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={set.isPending}>
            Set
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const remove = useDeleteSecret();
  return (
    <Confirm
      title={`Delete ${secret.name}?`}
      verb="Delete"
      isDangerous
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={(reason) =>
        remove.mutate(
          { name: secret.name, reason },
          {
            onSuccess: () => {
              toast({ tone: "good", text: `Deleted ${secret.name}` });
              onClose();
            },
          },
        )
      }
    >
      Its value is gone. Targets that refer to{" "}
      <code className="font-mono text-xs">{referenceTo(secret.name)}</code> fail from their next run on,
      unless the environment or a file has it.
    </Confirm>
  );
}

function RotateDialog({ onClose }: { onClose: () => void }) {
  const rotate = useRotateSecrets();
  return (
    <Confirm
      title="Encrypt all secrets anew?"
      verb="Encrypt anew"
      isBusy={rotate.isPending}
      error={rotate.error}
      onClose={onClose}
      onConfirm={(reason) =>
        rotate.mutate(reason, {
          onSuccess: ({ rotated }) => {
            toast({
              tone: "good",
              text: `Encrypted ${rotated} ${rotated === 1 ? "secret" : "secrets"} anew`,
            });
            onClose();
          },
        })
      }
    >
      Of all hosts, under the first key of FOLIOT_SECRET_KEY. Afterwards the other keys can be taken out of
      it.
    </Confirm>
  );
}
