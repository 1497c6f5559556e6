import type { Definition } from "@/api/schedule-editing";
import type { Schedule } from "@/api/types";
import { RelativeTime } from "@/time/Instant";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/Icon";
import { Differences } from "./Differences";
import { definitionOf } from "./definition";
import { differencesOf } from "./difference";

interface Props {
  mine: Definition;
  theirs: Schedule;
  isBusy: boolean;
  onMine: () => void;
  onTheirs: () => void;
  onEdit: () => void;
}

/** Shown when someone else saved first: the differences, and a choice between the versions. */
export function Conflict({ mine, theirs, isBusy, onMine, onTheirs, onEdit }: Props) {
  const differences = differencesOf(definitionOf(theirs), mine);
  return (
    <div className="flex flex-col gap-4">
      <div
        role="alert"
        className="bg-warn-soft text-warn flex items-start gap-2 rounded-md px-3 py-2 text-sm"
      >
        <Icon name="warning" className="mt-0.5" />
        <span>
          {theirs.updated_by ?? "Somebody"} changed this schedule <RelativeTime at={theirs.updated_ts} />,
          while you were editing it. It is at version {theirs.aggregate_version} now. Nothing of yours is
          saved yet.
        </span>
      </div>
      <h3 className="font-semibold">Where the two differ</h3>
      <div className="text-ink-faint -mb-2 hidden grid-cols-2 gap-2 px-3 text-xs sm:grid">
        <span>Theirs, saved</span>
        <span>Yours, not saved</span>
      </div>
      <Differences differences={differences} sides={["Theirs", "Yours"]} isEven />
      <ul className="flex flex-col gap-2">
        <Way
          title="Take mine"
          text="Saves your version. What they changed and you did not is put back as well."
          button={
            <Button look="danger" isBusy={isBusy} onClick={onMine}>
              Take mine
            </Button>
          }
        />
        <Way
          title="Take theirs"
          text="Leaves the schedule as they saved it. What you typed is lost."
          button={<Button onClick={onTheirs}>Take theirs</Button>}
        />
        <Way
          title="Edit"
          text="Goes on with the form: your changes, put over theirs. You save when it is right."
          button={
            <Button look="primary" onClick={onEdit}>
              Edit
            </Button>
          }
        />
      </ul>
    </div>
  );
}

function Way({ title, text, button }: { title: string; text: string; button: React.ReactNode }) {
  return (
    <li className="border-line flex items-center gap-3 rounded-lg border px-3 py-2.5">
      <div className="min-w-0 grow text-sm">
        <p className="font-medium">{title}</p>
        <p className="text-ink-soft">{text}</p>
      </div>
      {button}
    </li>
  );
}
