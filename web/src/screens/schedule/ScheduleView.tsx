// Details of a schedule, in tabs. Used in the panel over the list and on the schedule's own page.

import type { ReactNode } from "react";
import type { Schedule } from "@/api/types";
import { Link } from "@/routing/Link";
import { useSearch } from "@/routing/search";
import { LastResult } from "@/screens/schedules/LastResult";
import { Standing } from "@/screens/schedules/parts";
import { Tabs } from "@/ui/Tabs";
import { viewShape } from "./address";
import { Backfills } from "./BackfillDialog";
import { Code } from "./Code";
import { Configuration } from "./Configuration";
import { Executions } from "./Executions";
import { Figures } from "./Figures";
import { HeatMap } from "./HeatMap";
import { Ledger } from "./Ledger";
import { NextFires } from "./NextFires";
import { Told } from "./Told";
import { Versions } from "./Versions";

interface Props {
  schedule: Schedule;
  /** True: wide enough for columns. */
  isWide: boolean;
}

export function ScheduleView({ schedule, isWide }: Props) {
  const [view, setView] = useSearch(viewShape);
  const number = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : null);
  // A version in the URL selects the versions tab.
  const tab = view.tab === "summary" && view.version !== "" ? "versions" : view.tab;
  return (
    <Tabs
      label="Parts of the schedule"
      value={tab}
      onChange={(chosen) => setView({ tab: chosen, version: "", against: "" }, { replace: true })}
      tabs={[
        { value: "summary", label: "Summary", content: <Summary schedule={schedule} isWide={isWide} /> },
        { value: "fires", label: "Fires", content: <Ledger schedule={schedule} /> },
        {
          value: "executions",
          label: "Executions",
          content: (
            <Executions
              schedule={schedule}
              status={view.status}
              onStatus={(status) => setView({ status }, { replace: true })}
            />
          ),
        },
        {
          value: "versions",
          label: "Versions",
          content: (
            <Versions
              schedule={schedule}
              open={number(view.version)}
              against={number(view.against)}
              onOpen={(open, against) =>
                setView(
                  { version: open?.toString() ?? "", against: against?.toString() ?? "" },
                  { replace: true },
                )
              }
            />
          ),
        },
        {
          value: "code",
          label: "Copy as",
          content: (
            <Code schedule={schedule} kind={view.as} onKind={(as) => setView({ as }, { replace: true })} />
          ),
        },
      ]}
    />
  );
}

function Summary({ schedule, isWide }: Props) {
  if (isWide) {
    return (
      <div className="flex flex-col gap-4">
        <Stand schedule={schedule} />
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <div className="flex min-w-0 flex-col gap-4">
            <NextFires schedule={schedule} />
            <Backfills schedule={schedule} />
            <HeatMap schedule={schedule} />
            <Figures schedule={schedule} />
          </div>
          <div className="flex min-w-0 flex-col gap-4">
            <Configuration schedule={schedule} />
            <Told schedule={schedule} />
          </div>
        </div>
      </div>
    );
  }
  return (
    <div className="flex flex-col gap-4">
      <Stand schedule={schedule} />
      <NextFires schedule={schedule} />
      <Backfills schedule={schedule} />
      <HeatMap schedule={schedule} />
      <Figures schedule={schedule} />
      <Told schedule={schedule} />
      <Configuration schedule={schedule} />
    </div>
  );
}

/** Summary: state, last result and number of runs. */
function Stand({ schedule }: { schedule: Schedule }) {
  return (
    <dl className="border-line bg-surface shadow-low divide-line grid grid-cols-1 divide-y rounded-lg border sm:grid-cols-3 sm:divide-x sm:divide-y-0">
      <Figure name="State">
        <Standing schedule={schedule} />
      </Figure>
      <Figure name="Last result">
        <LastResult schedule={schedule} />
      </Figure>
      <Figure name="Scheduled runs">
        <span className="numbers font-medium">{schedule.run_count.toLocaleString("en")}</span>
        {typeof schedule.max_runs === "number" && (
          <span className="text-ink-soft text-xs"> of at most {schedule.max_runs.toLocaleString("en")}</span>
        )}
        <div>
          <Link
            href={`/executions?schedule_id=${schedule.schedule_id}&triggered_by=scheduler`}
            className="text-accent text-xs hover:underline"
          >
            Show them
          </Link>
        </div>
      </Figure>
    </dl>
  );
}

function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-0 px-4 py-2.5 text-sm">
      <dt className="text-ink-faint mb-1 text-xs">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </div>
  );
}
