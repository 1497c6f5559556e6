import { useQuery } from "@tanstack/react-query";
import { previewOf } from "@/api/schedule-editing";
import { nextFires } from "@/api/schedules";
import type { Schedule } from "@/api/types";
import { shownZoneOf, triggerKind } from "@/kinds";
import { definitionOf } from "@/screens/schedule-form/definition";
import { ClockMark, Warnings } from "@/screens/schedule-form/PreviewBox";
import { askedOf } from "@/screens/schedule-form/usePreviewAsked";
import { wallWords } from "@/screens/schedule-form/wall";
import { myZone } from "@/settings/zone";
import { Countdown } from "@/time/Countdown";
import { Badge } from "@/ui/Badge";
import { Card } from "@/ui/Card";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { reasonWords } from "./lateness";

const SHOWN = 10;

/** Next fire times, in the schedule's zone and the reader's. */
export function NextFires({ schedule }: { schedule: Schedule }) {
  const fires = useQuery(nextFires(schedule.schedule_id, SHOWN));
  // The preview of the same times adds what the plan lacks: clock changes and warnings.
  const preview = useQuery(previewOf(askedOf(definitionOf(schedule), schedule.schedule_id)));
  const marks = new Map(preview.data?.marks.map((mark) => [Date.parse(mark.fire), mark.clock_change]));
  const zone = shownZoneOf(schedule.trigger);
  const mine = myZone();
  const hasTwo = zone !== null && zone !== mine;
  const planned = (fires.data?.items ?? []).filter((fire) => fire.state === "planned");
  return (
    <Card title="Next times" aside={zone !== null && <span className="text-ink-faint text-xs">{zone}</span>}>
      <div className="flex flex-col gap-2 px-4 pb-3">
        {preview.data && <Warnings preview={preview.data} />}
        {fires.isPending ? (
          <Skeleton className="h-48" />
        ) : fires.error ? (
          <ErrorState error={fires.error} onRetry={() => fires.refetch()} />
        ) : planned.length === 0 ? (
          <EmptyState icon="clock" title="No time to come" isSmall>
            {whyNone(schedule)}
          </EmptyState>
        ) : (
          <table className="numbers w-full text-sm">
            <thead className={hasTwo ? "text-ink-faint text-left text-xs" : "sr-only"}>
              <tr>
                <th scope="col" className="pb-1 font-normal">
                  {hasTwo ? "Its time" : "Time"}
                </th>
                {hasTwo && (
                  <th scope="col" className="hidden pb-1 font-normal sm:table-cell">
                    Yours, {mine}
                  </th>
                )}
                <th scope="col" className="pb-1 text-right font-normal">
                  In
                </th>
              </tr>
            </thead>
            <tbody>
              {planned.map((fire) => (
                <tr key={fire.fire_ts} className="border-line border-t first:border-t-0">
                  <td className="py-1 pr-2 align-top">
                    <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
                      {wallWords(new Date(fire.fire_ts), hasTwo ? zone : mine)}
                      <ClockMark change={marks.get(Date.parse(fire.fire_ts))} />
                      {fire.reason && (
                        <span title={`It will be skipped: ${reasonWords(fire.reason)}`}>
                          <Badge tone="calm" icon="skip">{`skipped: ${fire.reason}`}</Badge>
                        </span>
                      )}
                    </span>
                    {hasTwo && (
                      <span className="text-ink-soft block text-xs sm:hidden">
                        {wallWords(new Date(fire.fire_ts), mine)} yours
                      </span>
                    )}
                  </td>
                  {hasTwo && (
                    <td className="text-ink-soft hidden py-1 pr-2 align-top sm:table-cell">
                      {wallWords(new Date(fire.fire_ts), mine)}
                    </td>
                  )}
                  <td className="text-ink-soft py-1 text-right align-top">
                    <Countdown at={fire.fire_ts} zone={zone} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </Card>
  );
}

function whyNone(schedule: Schedule): string | null {
  switch (schedule.state) {
    case "paused":
      return "It is paused.";
    case "inactive":
      return "It is inactive by its definition.";
    case "completed":
      return "It is completed.";
    case "error":
      return schedule.state_reason ?? "It could not be planned.";
    case "active":
      return triggerKind(schedule.trigger.kind)?.whyNoNext ?? null;
  }
}
