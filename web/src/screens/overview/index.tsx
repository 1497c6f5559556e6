import { useQuery } from "@tanstack/react-query";
import { clusterStatus } from "@/api/status";
import { FirstSchedule } from "@/screens/FirstSchedule";
import { Screen } from "@/shell/Screen";
import { ErrorState, Skeleton } from "@/ui/State";
import { ClusterCard } from "./ClusterCard";
import { FailuresCard } from "./FailuresCard";
import { LatenessCard, LoadCard } from "./LoadCards";
import { NextFiresCard } from "./NextFiresCard";
import { Tiles } from "./Tiles";

/** How things stand, at a glance. */
export default function Overview() {
  const status = useQuery(clusterStatus);
  if (status.data === undefined) {
    return (
      <Screen title="Overview">
        {status.error ? (
          <ErrorState error={status.error} onRetry={() => status.refetch()} />
        ) : (
          <div className="flex flex-col gap-4">
            <Skeleton className="h-24" />
            <Skeleton className="h-64" />
          </div>
        )}
      </Screen>
    );
  }
  const hasSchedules = Object.values(status.data.schedules.by_state).some((count) => count > 0);
  return (
    <Screen title="Overview">
      <div className="flex flex-col gap-4">
        {hasSchedules ? (
          <>
            <Tiles status={status.data} />
            <div className="grid gap-4 lg:grid-cols-2">
              <LoadCard />
              <LatenessCard />
            </div>
          </>
        ) : (
          <FirstSchedule />
        )}
        <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
          {hasSchedules && <NextFiresCard fires={status.data.next_fires} />}
          {hasSchedules && <FailuresCard failures={status.data.recent_failures} />}
          <ClusterCard status={status.data} />
        </div>
      </div>
    </Screen>
  );
}
