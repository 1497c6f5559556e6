import { useQueryClient } from "@tanstack/react-query";
import { ProblemError, textOf } from "@/api/problem";
import { base } from "@/routing/base";
import { Screen } from "@/shell/Screen";
import { Button } from "@/ui/Button";
import { CodeBlock } from "@/ui/Code";
import { Icon } from "@/ui/Icon";

interface Props {
  error: unknown;
  /** Render the failed screen again. */
  onRetry: () => void;
}

/** Shown in place of a screen that crashed: the error, what to do, and a report for the developers. */
export function Fault({ error, onRetry }: Props) {
  const client = useQueryClient();
  function retry() {
    // Cached data may have caused the crash. The session query is active, so it is not removed.
    client.removeQueries({ type: "inactive" });
    onRetry();
  }
  return (
    <Screen title="This screen failed">
      <div
        role="alert"
        className="border-line bg-surface shadow-low flex flex-col items-center gap-5 rounded-lg border px-6 py-14 text-center"
      >
        <div className="flex flex-col items-center gap-2">
          <span className="bg-bad-soft text-bad grid size-12 place-items-center rounded-full">
            <Icon name="warning" size={24} />
          </span>
          <p className="text-lg font-semibold">The page has a fault here</p>
          <p className="text-ink-soft max-w-md text-sm">
            The other screens work, and nothing on the server has failed by it: schedules go on.
          </p>
        </div>
        <div className="flex flex-wrap justify-center gap-2">
          <Button look="primary" icon="retry" onClick={retry}>
            Try again
          </Button>
          <Button onClick={() => window.location.reload()}>Load the page anew</Button>
          <Button onClick={() => window.location.assign(`${base}/`)}>To the overview</Button>
        </div>
        <details className="w-full max-w-2xl text-left">
          <summary className="text-ink-soft hover:text-ink rounded text-center text-sm">
            What happened
          </summary>
          <div className="mt-3">
            <CodeBlock code={reportOf(error)} what="the report" />
          </div>
        </details>
      </div>
    </Screen>
  );
}

/** Error report for the developers. The URL's query string is left out: it may contain names. */
function reportOf(error: unknown): string {
  const lines = [
    textOf(error),
    `at ${window.location.pathname}`,
    new Date().toISOString(),
    navigator.userAgent,
  ];
  if (error instanceof ProblemError && error.requestId) lines.push(`request ${error.requestId}`);
  if (error instanceof Error && error.stack) lines.push("", error.stack);
  return lines.join("\n");
}
