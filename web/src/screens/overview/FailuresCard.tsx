import type { Failure } from "@/api/types";
import { Link } from "@/routing/Link";
import { RelativeTime } from "@/time/Instant";
import { StatusBadge } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { EmptyState } from "@/ui/State";
import { MoreLink } from "./NextFiresCard";

export function FailuresCard({ failures }: { failures: readonly Failure[] }) {
  return (
    <Card
      title="Recent failures"
      aside={
        failures.length > 0 && <MoreLink href="/executions?status=failed&status=timeout&status=unknown" />
      }
    >
      {failures.length === 0 ? (
        <EmptyState icon="checkCircle" title="None in the last 24 hours" isSmall />
      ) : (
        <ul className="pb-2">
          {failures.slice(0, 6).map((failure) => (
            <li key={failure.execution_id}>
              <Link
                href={`/executions/${failure.execution_id}`}
                className="hover:bg-hover block px-4 py-1.5 text-sm focus-visible:-outline-offset-2"
              >
                <span className="flex items-center gap-2">
                  <span className="truncate">{failure.schedule_name ?? "a deleted schedule"}</span>
                  <span className="ml-auto flex items-center gap-2">
                    {failure.ended_ts && (
                      <RelativeTime at={failure.ended_ts} className="text-ink-faint text-xs" />
                    )}
                    <StatusBadge status={failure.status} />
                  </span>
                </span>
                {failure.error && (
                  <span className="text-ink-soft block truncate text-xs">{failure.error}</span>
                )}
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
