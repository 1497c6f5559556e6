import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { nextFires, schedule } from "@/api/schedules";
import type { Schedule } from "@/api/types";
import { Countdown } from "@/time/Countdown";
import { Instant, RelativeTime } from "@/time/Instant";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Sheet } from "@/ui/Dialog";
import { ErrorState, Skeleton } from "@/ui/State";
import { Tabs } from "@/ui/Tabs";
import { EnabledSwitch, ScheduleMenu, Standing, TargetLine, When } from "./parts";
import { zoneOf } from "./words";

/** One schedule, over the list. */
export function ScheduleSheet({ id, onClose }: { id: string; onClose: () => void }) {
  const found = useQuery(schedule(id));
  const [tab, setTab] = useState<"summary" | "definition">("summary");
  const known = found.data;
  return (
    <Sheet
      title={known?.name ?? (found.error ? "No such schedule" : "Loading…")}
      description={known?.description || undefined}
      actions={
        known && (
          <>
            <span className="pt-1">
              <EnabledSwitch schedule={known} />
            </span>
            <ScheduleMenu schedule={known} />
          </>
        )
      }
      onClose={onClose}
    >
      {known ? (
        <Tabs
          label="Parts of the schedule"
          value={tab}
          onChange={setTab}
          tabs={[
            { value: "summary", label: "Summary", content: <Summary schedule={known} /> },
            {
              value: "definition",
              label: "Definition",
              content: <JsonView value={definitionOf(known)} what="the definition" />,
            },
          ]}
        />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}

function Summary({ schedule: known }: { schedule: Schedule }) {
  const fires = useQuery(nextFires(known.schedule_id, 8));
  const zone = zoneOf(known.trigger);
  const planned = (fires.data?.items ?? []).filter((fire) => fire.state === "planned");
  return (
    <div className="flex flex-col gap-5">
      <dl className="grid grid-cols-[7rem_1fr] gap-x-4 gap-y-3 text-sm">
        <Entry name="State">
          <Standing schedule={known} />
        </Entry>
        <Entry name="When">
          <When schedule={known} />
        </Entry>
        <Entry name="What">
          <TargetLine target={known.target} />
        </Entry>
        <Entry name="Queue">
          {known.queue}, {known.priority} priority
        </Entry>
        <Entry name="Last run">
          {known.last_run_ts ? <RelativeTime at={known.last_run_ts} zone={zone} /> : "not yet"}
        </Entry>
        <Entry name="Owner">
          {known.managed_by}
          {known.managed_source && `, ${known.managed_source}`}
        </Entry>
        <Entry name="Changed">
          <RelativeTime at={known.updated_ts} zone={zone} />
          {known.updated_by && ` by ${known.updated_by}`}, version {known.aggregate_version}
        </Entry>
        <Entry name="Id">
          <span className="flex items-center gap-1">
            <code className="truncate font-mono text-xs">{known.schedule_id}</code>
            <CopyButton text={known.schedule_id} what="the id" />
          </span>
        </Entry>
      </dl>
      <section aria-labelledby="next-times">
        <h3 id="next-times" className="mb-1.5 text-sm font-semibold">
          Next times
        </h3>
        {fires.isPending ? (
          <Skeleton className="h-32" />
        ) : planned.length === 0 ? (
          <p className="text-ink-soft text-sm">There are none.</p>
        ) : (
          <ol className="border-line divide-line divide-y rounded-lg border text-sm">
            {planned.map((fire) => (
              <li key={fire.fire_ts} className="flex px-3 py-1.5">
                <Instant at={fire.fire_ts} zone={zone} />
                <span className="text-ink-soft ml-auto">
                  <Countdown at={fire.fire_ts} zone={zone} />
                </span>
              </li>
            ))}
          </ol>
        )}
      </section>
    </div>
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

const DEFINITION = [
  "name",
  "description",
  "active",
  "priority",
  "queue",
  "trigger",
  "target",
  "start_ts",
  "end_ts",
  "max_runs",
  "timeout_seconds",
  "misfire",
  "overlap",
  "retry",
  "delivery",
  "dst",
  "labels",
  "window",
  "calendars",
  "jitter_seconds",
] as const satisfies readonly (keyof Schedule)[];

/** What its author wrote, without what Foliot knows of it. */
function definitionOf(known: Schedule): Partial<Schedule> {
  return Object.fromEntries(DEFINITION.map((name) => [name, known[name]]));
}
