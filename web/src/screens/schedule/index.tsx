import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { schedule as scheduleQuery } from "@/api/schedules";
import { Link } from "@/routing/Link";
import { navigate } from "@/routing/location";
import { useSearch } from "@/routing/search";
import { ScheduleActions } from "@/screens/schedules/actions";
import { Screen } from "@/shell/Screen";
import { Icon } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { Acting } from "./Acting";
import { Actions } from "./Actions";
import { viewShape } from "./address";
import { ScheduleView } from "./ScheduleView";

/** Page of one schedule. */
export default function SchedulePage({ id }: { id: string }) {
  const found = useQuery(scheduleQuery(id));
  const [view, setView] = useSearch(viewShape);
  const close = useCallback(() => setView({ do: "" }, { replace: true }), [setView]);
  useArrival();
  const known = found.data;
  return (
    <ScheduleActions onDeleted={() => navigate("/schedules")}>
      <Link
        href="/schedules"
        className="text-ink-soft hover:text-ink -ml-1 mb-1 inline-flex h-6 items-center gap-1 text-sm"
      >
        <Icon name="left" size={13} />
        Schedules
      </Link>
      <Screen
        title={known?.name ?? (found.error ? "No such schedule" : "Schedule")}
        actions={
          known && (
            <div className="flex w-full items-center gap-2 sm:w-auto">
              <Actions schedule={known} />
            </div>
          )
        }
      >
        {known?.description && (
          <p className="text-ink-soft -mt-3 mb-4 max-w-prose text-sm break-words">{known.description}</p>
        )}
        {known ? (
          <ScheduleView schedule={known} isWide />
        ) : found.error ? (
          <ErrorState error={found.error} onRetry={() => found.refetch()} />
        ) : (
          <div className="flex flex-col gap-4">
            <Skeleton className="h-8" />
            <Skeleton className="h-64" />
          </div>
        )}
      </Screen>
      {known && <Acting schedule={known} act={view.do} onClose={close} />}
    </ScheduleActions>
  );
}

/** Scroll to the top and focus the content. From the list to its pages, the shell does neither by itself. */
function useArrival(): void {
  useEffect(() => {
    window.scrollTo(0, 0);
    const isCovered = document.querySelector("[role=dialog]") !== null;
    if (!isCovered) document.getElementById("main")?.focus({ preventScroll: true });
  }, []);
}
