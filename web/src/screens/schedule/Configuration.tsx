import type { ReactNode } from "react";
import type { Schedule, Target } from "@/api/types";
import { labelOf, OTHER_ICON, targetKind, triggerKind, useKinds, withoutKind } from "@/kinds";
import { Link } from "@/routing/Link";
import {
  deliveryWords,
  dstWords,
  lengthWords,
  misfireWords,
  overlapWords,
  retryWords,
  windowWords,
} from "@/screens/schedule-form/sentences";
import { When } from "@/screens/schedules/parts";
import { zoneOf } from "@/screens/schedules/words";
import { Instant, RelativeTime } from "@/time/Instant";
import { Card } from "@/ui/Card";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Icon } from "@/ui/Icon";

/** The schedule's definition, in groups of sentences. */
export function Configuration({ schedule }: { schedule: Schedule }) {
  const zone = zoneOf(schedule.trigger);
  const hasWall = triggerKind(schedule.trigger.kind)?.hasWallTimes ?? false;
  return (
    <Card title="Configuration">
      <div className="divide-line flex flex-col divide-y px-4 pb-2 text-sm">
        <Part title="When">
          <When schedule={schedule} />
          {hasWall && <p className="text-ink-soft mt-1">{dstWords(schedule.dst)}</p>}
          {(schedule.window || schedule.calendars.length > 0 || schedule.jitter_seconds > 0) && (
            <p className="text-ink-soft mt-1">
              {schedule.window && windowWords(schedule.window)}
              {schedule.calendars.length > 0 && ` Not on the days of ${schedule.calendars.join(", ")}.`}
              {schedule.jitter_seconds > 0 &&
                ` Starts are spread over ${lengthWords(schedule.jitter_seconds)}.`}
            </p>
          )}
          {(schedule.start_ts || schedule.end_ts || typeof schedule.max_runs === "number") && (
            <ul className="text-ink-soft mt-1">
              {schedule.start_ts && (
                <li>
                  Not before <Instant at={schedule.start_ts} zone={zone} />
                </li>
              )}
              {schedule.end_ts && (
                <li>
                  Not after <Instant at={schedule.end_ts} zone={zone} />
                </li>
              )}
              {typeof schedule.max_runs === "number" && (
                <li>
                  {schedule.run_count} of at most {schedule.max_runs} scheduled runs
                </li>
              )}
            </ul>
          )}
        </Part>
        <Part title="What">
          <TargetDetails target={schedule.target} />
        </Part>
        <Part title="If something goes wrong">
          <ul className="text-ink-soft flex flex-col gap-1">
            <li>An attempt may take at most {lengthWords(schedule.timeout_seconds)}.</li>
            <li>{retryWords(schedule.retry)}</li>
            <li>{overlapWords(schedule.overlap)}</li>
            <li>{misfireWords(schedule.misfire)}</li>
            <li>{deliveryWords(schedule.delivery)}</li>
          </ul>
        </Part>
        <Part title="Where it belongs">
          <dl className="grid grid-cols-[6rem_1fr] gap-x-3 gap-y-1">
            <Entry name="Queue">
              {schedule.queue}, {schedule.priority} priority
            </Entry>
            {Object.keys(schedule.labels ?? {}).length > 0 && (
              <Entry name="Labels">
                <span className="flex flex-wrap gap-1">
                  {Object.entries(schedule.labels ?? {}).map(([name, value]) => (
                    <Link
                      key={name}
                      href={`/schedules?label=${encodeURIComponent(`${name}:${value}`)}`}
                      className="bg-sunken hover:bg-hover min-w-0 rounded px-1.5 py-0.5 text-xs [overflow-wrap:anywhere]"
                    >
                      {name}: {value}
                    </Link>
                  ))}
                </span>
              </Entry>
            )}
            <Entry name="Managed by">
              {schedule.managed_by}
              {schedule.managed_source && `, ${schedule.managed_source}`}
            </Entry>
            <Entry name="Created">
              <RelativeTime at={schedule.created_ts} zone={zone} />
              {schedule.created_by && ` by ${schedule.created_by}`}
            </Entry>
            <Entry name="Changed">
              <RelativeTime at={schedule.updated_ts} zone={zone} />
              {schedule.updated_by && ` by ${schedule.updated_by}`}, version {schedule.aggregate_version}
            </Entry>
            <Entry name="Id">
              <span className="flex items-center gap-1">
                <code className="truncate font-mono text-xs">{schedule.schedule_id}</code>
                <CopyButton text={schedule.schedule_id} what="the id" className="-my-1.5" />
              </span>
            </Entry>
          </dl>
        </Part>
      </div>
    </Card>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="py-3 first:pt-1">
      <h3 className="text-ink-faint mb-1 text-xs font-medium">{title}</h3>
      {children}
    </section>
  );
}

function Entry({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-faint">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function TargetDetails({ target }: { target: Target }) {
  const kinds = useKinds();
  const own = targetKind(target.kind);
  const details = own?.details(target) ?? [["Fields", withoutKind(target)] as const];
  return (
    <div className="flex flex-col gap-2">
      <p className="flex min-w-0 items-center gap-1.5">
        <Icon name={own?.icon ?? OTHER_ICON} size={14} className="text-ink-faint" />
        <span className="text-ink-soft">{labelOf("target", target.kind, kinds)}</span>
        <code className="min-w-0 font-mono text-xs break-all">
          {own?.title?.(target) ?? own?.line(target)}
        </code>
      </p>
      {details
        .filter(([, value]) => !isEmpty(value))
        .map(([name, value]) => (
          <div key={name}>
            <p className="text-ink-faint mb-0.5 text-xs">{name}</p>
            <JsonView value={value} what={`the ${name.toLowerCase()}`} />
          </div>
        ))}
    </div>
  );
}

function isEmpty(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0)
  );
}
