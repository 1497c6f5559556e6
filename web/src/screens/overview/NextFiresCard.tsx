import type { NextFire } from "@/api/types";
import { Link } from "@/routing/Link";
import { Countdown } from "@/time/Countdown";
import { Instant } from "@/time/Instant";
import { Card } from "@/ui/Card";
import { EmptyState } from "@/ui/State";

export function NextFiresCard({ fires }: { fires: readonly NextFire[] }) {
  return (
    <Card title="Next" aside={<MoreLink href="/schedules?state=active&sort=next_run_ts" />}>
      {fires.length === 0 ? (
        <EmptyState icon="clock" title="Nothing is due" isSmall />
      ) : (
        <ul className="pb-2">
          {fires.slice(0, 8).map((fire) => (
            <li key={fire.schedule_id}>
              <Link
                href={`/schedules/${fire.schedule_id}`}
                className="hover:bg-hover flex items-baseline gap-3 px-4 py-1.5 text-sm focus-visible:-outline-offset-2"
              >
                <span className="truncate">{fire.name}</span>
                <Instant at={fire.next_run_ts} className="text-ink-faint ml-auto text-xs" />
                <Countdown at={fire.next_run_ts} className="min-w-14 text-right font-medium" />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

export function MoreLink({ href }: { href: string }) {
  return (
    <Link href={href} className="text-accent rounded text-xs font-medium hover:underline">
      All
    </Link>
  );
}
