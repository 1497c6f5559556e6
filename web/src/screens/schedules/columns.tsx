import type { ListedSchedule } from "@/api/types";
import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { panelAddress } from "@/screens/schedule/address";
import { Sparkline } from "@/ui/Sparkline";
import { columnsOf } from "@/ui/Table";
import { LastResult } from "./LastResult";
import { EnabledSwitch, Owner, ScheduleMenu, Standing, TargetLine, When } from "./parts";

const column = columnsOf<ListedSchedule>();

export const COLUMNS = column.columns([
  column.display({
    id: "enabled",
    header: "",
    meta: { label: "Enabled", className: "w-12" },
    cell: ({ row }) => <EnabledSwitch schedule={row.original} />,
  }),
  column.display({
    id: "name",
    header: "Name",
    meta: { sort: "name" },
    cell: ({ row }) => <Name schedule={row.original} />,
  }),
  column.display({
    id: "when",
    header: "When",
    cell: ({ row }) => <When schedule={row.original} />,
  }),
  column.display({
    id: "standing",
    header: "State, next run",
    meta: { sort: "next_run_ts", className: "w-40" },
    cell: ({ row }) => <Standing schedule={row.original} />,
  }),
  column.display({
    id: "last",
    header: "Last result",
    meta: { sort: "last_run_ts", className: "w-42" },
    cell: ({ row }) => <LastResult schedule={row.original} />,
  }),
  column.display({
    id: "recent",
    header: "Last 20",
    meta: { className: "w-30" },
    cell: ({ row }) => <Sparkline recent={row.original.recent ?? []} />,
  }),
  column.display({
    id: "actions",
    header: "",
    meta: { label: "Actions", className: "w-13 text-right" },
    cell: ({ row }) => <ScheduleMenu schedule={row.original} />,
  }),
]);

/** Name of the schedule, linked to its panel, with its target and owner below. */
export function Name({ schedule }: { schedule: ListedSchedule }) {
  const { search } = useLocation();
  return (
    <div className="min-w-0">
      <Link
        href={panelAddress(search, { open: schedule.schedule_id })}
        title={schedule.description || schedule.name}
        className="block truncate rounded font-medium hover:underline"
      >
        {schedule.name}
      </Link>
      <span className="flex items-center gap-1">
        <TargetLine target={schedule.target} />
        <Owner schedule={schedule} />
      </span>
    </div>
  );
}

/** A row of the list on narrow screens. */
export function ScheduleCard({ schedule }: { schedule: ListedSchedule }) {
  return (
    <div className="flex flex-col gap-2.5">
      <div className="flex items-start gap-1.5">
        <div className="min-w-0 grow">
          <Name schedule={schedule} />
        </div>
        <EnabledSwitch schedule={schedule} />
        <div className="-mt-1 -mr-2">
          <ScheduleMenu schedule={schedule} />
        </div>
      </div>
      <div className="text-sm">
        <When schedule={schedule} />
      </div>
      <div className="grid grid-cols-2 gap-3 text-sm">
        <Standing schedule={schedule} />
        <div className="flex min-w-0 flex-col gap-1.5">
          <LastResult schedule={schedule} />
          {schedule.recent && schedule.recent.length > 0 && <Sparkline recent={schedule.recent} />}
        </div>
      </div>
    </div>
  );
}
