import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSilentSince } from "@/api/connection";
import { ProblemError } from "@/api/problem";
import { clusterStatus } from "@/api/status";
import type { ClusterStatus } from "@/api/types";
import { Link } from "@/routing/Link";
import { Instant } from "@/time/Instant";
import { Icon } from "@/ui/Icon";
import { DATABASE_AWAY, type Trouble, troublesOf } from "./troubles";

const TONES = { bad: "bg-bad-soft text-bad", warn: "bg-warn-soft text-warn" } as const;

/** On every page: what keeps work from being done now. */
export function TroubleBanner() {
  const silentSince = useSilentSince();
  const status = useQuery(clusterStatus);
  // What was true before the server fell silent need not be true now.
  const troubles = silentSince === null ? troublesNow(status.data, status.failureReason) : [];
  const spoken = useSpoken(troubles);
  return (
    <section aria-label="What stops work">
      <p aria-live="polite" className="sr-only">
        {spoken}
      </p>
      {silentSince !== null && <Silence since={silentSince} />}
      {troubles.length > 0 && (
        <ul className="border-line border-b">
          {troubles.map((trouble) => (
            <TroubleLine key={trouble.key} trouble={trouble} />
          ))}
        </ul>
      )}
    </section>
  );
}

function troublesNow(status: ClusterStatus | undefined, error: unknown): Trouble[] {
  if (error instanceof ProblemError && error.code === "database_unreachable") {
    return [DATABASE_AWAY];
  }
  return status === undefined ? [] : troublesOf(status);
}

/** What is read out: when a trouble comes or goes, and not with each new number. */
function useSpoken(troubles: readonly Trouble[]): string {
  const keys = troubles.map((trouble) => trouble.key).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the words of the same troubles change all the time
  return useMemo(() => troubles.map((trouble) => trouble.text).join(" "), [keys]);
}

function Silence({ since }: { since: Date }) {
  return (
    <p role="alert" className={`${LINE} border-line border-b ${TONES.bad}`}>
      <Icon name="warning" className="mt-0.5 shrink-0" />
      <span>
        The server can't be reached since <Instant at={since.toISOString()} />. What you see may be older; it
        is tried again.
      </span>
    </p>
  );
}

const LINE = "flex items-start gap-2 px-4 py-1.5 text-sm sm:px-5";

function TroubleLine({ trouble: { tone, text, href, link } }: { trouble: Trouble }) {
  return (
    <li className={`${LINE} ${TONES[tone]}`}>
      <Icon name={tone === "bad" ? "warning" : "hourglass"} className="mt-0.5 shrink-0" />
      <span className="min-w-0 [overflow-wrap:anywhere]">{text}</span>
      <Link href={href} className="ml-auto shrink-0 rounded font-medium underline hover:no-underline">
        {link}
      </Link>
    </li>
  );
}
