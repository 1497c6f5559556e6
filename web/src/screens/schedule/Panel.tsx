// Panels over the list of schedules: one schedule, its form, or the form of a new one. Loaded on first use,
// so that the list appears sooner.

import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { schedule as scheduleQuery } from "@/api/schedules";
import type { Schedule } from "@/api/types";
import { navigate, useLocation } from "@/routing/location";
import { useSearch } from "@/routing/search";
import { NewSchedule } from "@/screens/schedule-form/ScheduleEditor";
import { IconButton } from "@/ui/Button";
import { Sheet } from "@/ui/Dialog";
import { ErrorState, Skeleton } from "@/ui/State";
import { Acting, tellSaved } from "./Acting";
import { Actions } from "./Actions";
import { pageAddress, panelAddress, panelShape } from "./address";
import { ScheduleView } from "./ScheduleView";

export default function Panel({ isNew }: { isNew: boolean }) {
  const [view] = useSearch(panelShape);
  return isNew ? <NewPanel likeId={view.like} /> : <OpenPanel key={view.open} id={view.open} />;
}

function NewPanel({ likeId }: { likeId: string }) {
  const { search } = useLocation();
  const close = useCallback(() => navigate(panelAddress(search, {})), [search]);
  const saved = useCallback(
    (made: Schedule) => {
      tellSaved(made, true);
      navigate(panelAddress(search, { open: made.schedule_id }));
    },
    [search],
  );
  return <NewSchedule key={likeId} likeId={likeId} onClose={close} onSaved={saved} />;
}

function OpenPanel({ id }: { id: string }) {
  const found = useQuery(scheduleQuery(id));
  const { search } = useLocation();
  const [view, setView] = useSearch(panelShape);
  const close = useCallback(() => navigate(panelAddress(search, {})), [search]);
  const endAct = useCallback(() => setView({ do: "" }, { replace: true }), [setView]);
  const known = found.data;
  if (known && view.do === "edit") {
    return <Acting schedule={known} act={view.do} onClose={endAct} />;
  }
  return (
    <Sheet
      title={known?.name ?? (found.error ? "No such schedule" : "Loading…")}
      description={known?.description || undefined}
      actions={
        <IconButton
          icon="screen"
          label="Open as a page"
          onClick={() => navigate(pageAddress(id, { tab: view.tab, version: view.version, as: view.as }))}
        />
      }
      onClose={close}
    >
      {known ? (
        <>
          <div className="mb-3 flex flex-wrap items-center gap-2">
            <Actions schedule={known} />
          </div>
          <ScheduleView schedule={known} isWide={false} />
          <Acting schedule={known} act={view.do} onClose={endAct} />
        </>
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}
