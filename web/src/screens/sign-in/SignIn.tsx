import { type FormEvent, useEffect, useState } from "react";
import { ProblemError, textOf } from "@/api/problem";
import { useSignIn } from "@/api/session";
import { Button } from "@/ui/Button";
import { FormProblem, TextField } from "@/ui/Field";
import { Mark } from "@/ui/Mark";

/** Sign-in screen: with an API key, or with the link that `foliot up` prints. */
export function SignIn() {
  const [key, setKey] = useState("");
  const signIn = useSignIn();
  const isSpent = new URLSearchParams(window.location.search).get("link") === "spent";
  useEffect(() => {
    document.title = "Sign in · Foliot";
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (key.trim() !== "" && !signIn.isPending) signIn.mutate(key.trim());
  }

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="flex w-full max-w-sm flex-col gap-6">
        <div className="flex flex-col items-center gap-3 text-center">
          <Mark size={44} />
          <h1 className="text-xl font-semibold tracking-tight">Sign in to Foliot</h1>
        </div>
        <form
          onSubmit={submit}
          className="border-line bg-surface shadow-low flex flex-col gap-4 rounded-xl border p-5"
          aria-label="Sign in"
        >
          {isSpent && signIn.error === null && (
            <FormProblem text="This sign-in link was used already, or has run out. Sign in with a key, or start foliot up again for a new link." />
          )}
          <TextField
            label="Key"
            type="password"
            name="key"
            autoComplete="current-password"
            spellCheck={false}
            autoFocus
            required
            maxLength={1000}
            value={key}
            onChange={setKey}
            className="font-mono"
          />
          <FormProblem text={signIn.error === null ? null : reasonOf(signIn.error)} />
          <Button type="submit" look="primary" isBusy={signIn.isPending} className="h-9">
            Sign in
          </Button>
        </form>
        <div className="text-ink-soft flex flex-col gap-2 px-1 text-sm">
          <p>
            <Word>foliot up</Word> prints a link that signs one browser in, once. It needs no key.
          </p>
          <p>
            Keys are made by an admin: <Word>foliot key create</Word>. The operator's own is FOLIOT_ADMIN_KEY,
            or in the file <Word>foliot.db.admin-key</Word> beside the database.
          </p>
        </div>
      </div>
    </main>
  );
}

function Word({ children }: { children: string }) {
  return <code className="bg-sunken rounded px-1 py-0.5 font-mono text-xs">{children}</code>;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ProblemError)) return textOf(error);
  if (error.status === 401) return "This key is not valid, or not any more.";
  if (error.status === 429) return `Too many tries. Wait ${error.retryAfter ?? 60} seconds.`;
  return error.message;
}
