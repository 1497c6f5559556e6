// Dialogs over a schedule: edit form, manual run, backfill. The URL says which one is open.

import { useCallback } from "react";
import type { Schedule } from "@/api/types";
import { navigate } from "@/routing/location";
import { EditSchedule } from "@/screens/schedule-form/ScheduleEditor";
import { toast } from "@/ui/Toasts";
import { type Act, pageAddress } from "./address";
import { BackfillDialog } from "./BackfillDialog";
import { RunDialog } from "./RunDialog";

interface Props {
  schedule: Schedule;
  act: Act;
  onClose: () => void;
}

export function Acting({ schedule, act, onClose }: Props) {
  const saved = useCallback(
    (made: Schedule) => {
      tellSaved(made);
      onClose();
    },
    [onClose],
  );
  switch (act) {
    case "edit":
      return (
        <EditSchedule
          key={schedule.schedule_id}
          id={schedule.schedule_id}
          onClose={onClose}
          onSaved={saved}
        />
      );
    case "run":
      return <RunDialog key={schedule.schedule_id} schedule={schedule} onClose={onClose} />;
    case "backfill":
      return <BackfillDialog key={schedule.schedule_id} schedule={schedule} onClose={onClose} />;
    case "":
      return null;
  }
}

/** Toast after saving, with a button to run the schedule. A run needs a saved schedule. */
export function tellSaved(made: Schedule, isNew = false): void {
  toast({
    tone: "good",
    text: isNew ? `Created ${made.name}` : `Saved ${made.name}`,
    detail: `Version ${made.aggregate_version}`,
    action: { label: "Run it now…", run: () => navigate(pageAddress(made.schedule_id, { do: "run" })) },
  });
}
