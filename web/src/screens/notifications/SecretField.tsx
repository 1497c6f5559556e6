import { useInfiniteQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import type { FieldProblem } from "@/api/problem";
import { secretList } from "@/api/secrets";
import { useWhyNot } from "@/api/session";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { SigningKeyDialog } from "./SigningKeyDialog";

interface Props {
  /** The name of the secret. */
  value: string;
  onChange: (name: string) => void;
  problem: FieldProblem | null;
}

/** The secret that signs messages. Only admins can list secrets; others must know the name. */
export function SecretField({ value, onChange, problem }: Props) {
  const id = useId();
  const mayNotSet = useWhyNot("admin");
  const list = useInfiniteQuery({ ...secretList, enabled: mayNotSet === null });
  const names = list.data?.pages.flatMap((page) => page.items.map((secret) => secret.name)) ?? [];
  const [isMaking, setMaking] = useState(false);
  return (
    <div className="flex flex-col items-start gap-2">
      <div className="w-full">
        <TextField
          label="Signing secret"
          list={`${id}-names`}
          value={value}
          onChange={onChange}
          maxLength={140}
          autoComplete="off"
          spellCheck={false}
          placeholder="webhook_key"
          hint={
            <>
              The name of a stored secret, whose value is <code className="font-mono">whsec_</code> and a key
              in base64.{" "}
              {mayNotSet === null && (
                <a
                  href="/access/secrets"
                  target="_blank"
                  rel="noreferrer"
                  className="text-accent rounded underline"
                >
                  All secrets
                </a>
              )}
            </>
          }
          problem={problem}
        />
        <datalist id={`${id}-names`}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <Button size="small" icon="access" whyNot={mayNotSet} onClick={() => setMaking(true)}>
        Make a key…
      </Button>
      {isMaking && (
        <SigningKeyDialog
          taken={names}
          onMade={(name) => {
            setMaking(false);
            onChange(name);
          }}
          onClose={() => setMaking(false)}
        />
      )}
    </div>
  );
}
