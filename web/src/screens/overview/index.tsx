import { useQuery } from "@tanstack/react-query";
import { clusterStatus } from "@/api/status";
import type { ClusterStatus } from "@/api/types";
import { FirstSchedule } from "@/screens/FirstSchedule";
import { Screen } from "@/shell/Screen";
import { ErrorState, Skeleton } from "@/ui/State";
import { ClusterCard } from "./ClusterCard";
import { FailuresCard } from "./FailuresCard";
import { LatenessCard, LoadCard } from "./LoadCards";
import { NextFiresCard } from "./NextFiresCard";
import { Tiles } from "./Tiles";

/** The overview screen: the state of the cluster at a glance. */
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
      {hasSchedules ? <Figures status={status.data} /> : <FirstSchedule />}
      {!hasSchedules && (
        <div className="mx-auto max-w-5xl">
          <ClusterCard status={status.data} />
        </div>
      )}
    </Screen>
  );
}

function Figures({ status }: { status: ClusterStatus }) {
  return (
    <div className="flex flex-col gap-4">
      <Tiles status={status} />
      <div className="grid gap-4 lg:grid-cols-2">
        <LoadCard />
        <LatenessCard />
      </div>
      <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
        <NextFiresCard fires={status.next_fires} />
        <FailuresCard failures={status.recent_failures} />
        <ClusterCard status={status} />
      </div>
    </div>
  );
}
