import type { Schedule } from "@/api/types";
import { navigate } from "@/routing/location";
import { useScheduleActions } from "@/screens/schedules/actions";
import { ScheduleMenu } from "@/screens/schedules/parts";
import { Button } from "@/ui/Button";
import { useActAddress } from "./address";

/** Buttons for the most frequent actions on a schedule, and a menu with the others. */
export function Actions({ schedule }: { schedule: Schedule }) {
  const { resume, askPause, mayNotSteer, mayNotEdit, switchingId } = useScheduleActions();
  const addressOf = useActAddress();
  const isBusy = switchingId === schedule.schedule_id;
  return (
    <>
      <Button
        look="primary"
        icon="play"
        whyNot={mayNotSteer}
        onClick={() => navigate(addressOf(schedule.schedule_id, "run"))}
      >
        Run now…
      </Button>
      {schedule.paused ? (
        <Button icon="play" whyNot={mayNotSteer} isBusy={isBusy} onClick={() => resume(schedule)}>
          Resume
        </Button>
      ) : (
        <Button icon="pause" whyNot={mayNotSteer} isBusy={isBusy} onClick={() => askPause(schedule)}>
          Pause…
        </Button>
      )}
      <Button
        icon="edit"
        whyNot={mayNotEdit}
        onClick={() => navigate(addressOf(schedule.schedule_id, "edit"))}
      >
        Edit
      </Button>
      <ScheduleMenu schedule={schedule} />
    </>
  );
}
