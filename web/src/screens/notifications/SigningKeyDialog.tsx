import { type FormEvent, useState } from "react";
import { problemBesides, problemOf } from "@/api/problem";
import { useSetSecret } from "@/api/secrets";
import { Button } from "@/ui/Button";
import { CodeBlock } from "@/ui/Code";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { toast } from "@/ui/Toasts";
import { newSigningKey } from "./signing-key";

interface Props {
  /** Names of existing secrets. The dialog must not overwrite one by accident. */
  taken: readonly string[];
  onMade: (name: string) => void;
  onClose: () => void;
}

/** Dialog that creates a signing key, shows it once for the receiver, and stores it as a secret. */
export function SigningKeyDialog({ taken, onMade, onClose }: Props) {
  const set = useSetSecret();
  const [name, setName] = useState("");
  const [key] = useState(newSigningKey);
  const wanted = name.trim();
  const whyNot =
    wanted === ""
      ? "Give it a name."
      : taken.includes(wanted)
        ? "There is a secret of this name: choose another."
        : null;

  function submit(event: FormEvent) {
    event.preventDefault();
    event.stopPropagation(); // else the form behind this dialog would also submit
    if (set.isPending || whyNot !== null) return;
    set.mutate(
      { name: wanted, value: key },
      {
        onSuccess: () => {
          toast({ tone: "good", text: `Stored ${wanted}` });
          onMade(wanted);
        },
      },
    );
  }

  return (
    <Dialog
      title="A new signing key"
      description="Give it to the receiver: by it messages are known to be yours. It can't be shown again."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4" autoComplete="off">
        <CodeBlock code={key} what="the key" />
        <TextField
          label="Store it as the secret"
          value={name}
          onChange={setName}
          maxLength={126}
          autoComplete="off"
          spellCheck={false}
          placeholder="webhook_key"
          hint={wanted !== "" && whyNot !== null ? whyNot : "Letters, digits and underscores."}
          problem={problemOf(set.error, "/name")}
        />
        <FormProblem text={problemBesides(set.error, ["/name"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={set.isPending} whyNot={whyNot}>
            Store it
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
