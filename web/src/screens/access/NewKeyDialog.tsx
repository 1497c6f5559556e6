import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { hostList } from "@/api/hosts";
import { type MadeKey, useMakeKey } from "@/api/keys";
import { problemBesides, problemOf } from "@/api/problem";
import { useMe } from "@/api/session";
import { ROLES, type Role } from "@/api/types";
import { presently } from "@/time/clock";
import { Instant } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/Copy";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, SelectField, TextField } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { endOf, type Lifetime } from "./key-state";
import { RoleBadge } from "./parts";
import { ROLE_WORDS } from "./roles";

const LIFETIME_WORDS: readonly { value: Lifetime; label: string }[] = [
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "day", label: "At the end of a day" },
  { value: "never", label: "Never by itself" },
];

interface Props {
  /** Host of the new key. Empty: the reader's own host. */
  hostId: string;
  onClose: () => void;
}

/** Dialog that creates an API key and shows it once. */
export function NewKeyDialog({ hostId, onClose }: Props) {
  const make = useMakeKey();
  if (make.data) {
    return <Shown made={make.data} onClose={onClose} />;
  }
  return <Form hostId={hostId} make={make} onClose={onClose} />;
}

function Form({ hostId, make, onClose }: Props & { make: ReturnType<typeof useMakeKey> }) {
  const known = useMe();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [day, setDay] = useState("");
  const [host, setHost] = useState(hostId || (known?.host_id ?? ""));
  const hosts = useInfiniteQuery({ ...hostList, enabled: known?.is_operator ?? false });
  const named = hosts.data?.pages.flatMap((page) => page.items) ?? [];
  const whyNot = lifetime === "day" && day === "" ? "Say on which day it ends." : null;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (make.isPending || whyNot !== null) return;
    make.mutate({
      name: name.trim(),
      role,
      expires_ts: endOf(lifetime, day, presently()),
      ...(host !== "" && host !== known?.host_id ? { host_id: host } : {}),
    });
  }

  return (
    <Dialog
      title="New key"
      description="For a program or a person. It is shown once."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <TextField
          label="Name"
          hint="Who or what uses it, such as ci or alice."
          value={name}
          onChange={setName}
          required
          maxLength={126}
          autoComplete="off"
          problem={problemOf(make.error, "/name")}
        />
        <RoleChoice value={role} onChange={setRole} />
        <SelectField
          label="Expires"
          value={lifetime}
          choices={LIFETIME_WORDS}
          onChange={setLifetime}
          hint={lifetime === "never" ? "Whoever finds it can use it until somebody revokes it." : undefined}
          problem={lifetime === "day" ? null : problemOf(make.error, "/expires_ts")}
        />
        {lifetime === "day" && (
          <TextField
            label="Day"
            type="date"
            value={day}
            onChange={setDay}
            hint="To its end, in your time zone."
            problem={problemOf(make.error, "/expires_ts")}
          />
        )}
        {known?.is_operator && named.length > 1 && (
          <SelectField
            label="Host"
            value={host}
            choices={named.map((each) => ({
              value: each.host_id,
              label: each.host_id === known.host_id ? `${each.name} (yours)` : each.name,
            }))}
            onChange={setHost}
            hint="The key sees this host alone."
            problem={problemOf(make.error, "/host_id")}
          />
        )}
        <FormProblem text={problemBesides(make.error, ["/name", "/expires_ts", "/host_id"])} />
        <div className="border-line bg-raised sticky -bottom-5 -mx-5 -mb-5 flex justify-end gap-2 border-t px-5 py-3">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={make.isPending} whyNot={whyNot}>
            Make the key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function RoleChoice({ value, onChange }: { value: Role; onChange: (role: Role) => void }) {
  const id = useId();
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 text-sm font-medium">Role</legend>
      {ROLES.map((role) => (
        <label
          key={role}
          className="border-line has-checked:border-accent has-checked:bg-picked hover:border-line-strong flex cursor-pointer items-start gap-2.5 rounded-md border px-3 py-2"
        >
          <input
            type="radio"
            name={id}
            value={role}
            checked={value === role}
            onChange={() => onChange(role)}
            aria-describedby={`${id}-${role}`}
            className="accent-accent mt-1"
          />
          <span>
            <span className="block text-sm font-medium">{role}</span>
            <span id={`${id}-${role}`} className="text-ink-soft block text-xs">
              {ROLE_WORDS[role]}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** Shows the new key. Only its button closes the dialog: the key can't be shown again. */
function Shown({ made, onClose }: { made: MadeKey; onClose: () => void }) {
  const [copied, setCopied] = useState<"not yet" | "copied" | "refused">("not yet");
  return (
    <Dialog
      title={`Key ${made.name}`}
      isOpen
      onOpenChange={(isOpen) => !isOpen && copied === "copied" && onClose()}
    >
      <div className="mt-3 flex flex-col gap-4">
        <p className="bg-warn-soft text-warn flex items-start gap-2 rounded-md px-3 py-2 text-sm">
          <Icon name="warning" className="mt-0.5" />
          <span>Copy it now. It is kept only as a hash, and can't be shown again.</span>
        </p>
        <div className="border-line bg-sunken rounded-lg border p-3">
          <code className="block font-mono text-sm break-all select-all">{made.key}</code>
        </div>
        <div className="text-ink-soft flex flex-wrap items-center gap-2 text-sm">
          <RoleBadge role={made.role} />
          {made.expires_ts ? (
            <span>
              expires <Instant at={made.expires_ts} />
            </span>
          ) : (
            <span>never expires by itself</span>
          )}
        </div>
        <p role="status" className="text-ink-soft text-sm empty:hidden">
          {copied === "refused" && "This browser lets nothing be copied here: select the key and copy it."}
        </p>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>I have kept it</Button>
          <Button
            look="primary"
            icon={copied === "copied" ? "check" : "copy"}
            onClick={async () => setCopied((await copyText(made.key)) ? "copied" : "refused")}
          >
            {copied === "copied" ? "Copied" : "Copy the key"}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
