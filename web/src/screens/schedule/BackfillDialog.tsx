import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import {
  type Backfill,
  backfillsOf,
  backfillWith,
  goesOn,
  useBackfill,
  useCancelBackfill,
} from "@/api/schedule-history";
import { useWhyNot } from "@/api/session";
import type { Schedule } from "@/api/types";
import { problemsOf } from "@/screens/schedule-form/problems";
import { instantAt, wallTime } from "@/screens/schedule-form/wall";
import { zoneOf } from "@/screens/schedules/words";
import { myZone } from "@/settings/zone";
import { presently } from "@/time/clock";
import { count } from "@/time/format";
import { Instant } from "@/time/Instant";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import type { IconName } from "@/ui/Icon";

const SHOWN = ["/from_ts", "/to_ts", "/reason"];
const DAY_MS = 86_400_000;

/** Start of the instant's day in the zone, as the value of a `datetime-local` input. */
function midnight(instant: Date, zone: string): string {
  return `${wallTime(instant.toISOString(), zone).slice(0, 10)}T00:00`;
}

/** Dialog that starts a backfill: runs for all fire times in a past range. */
export function BackfillDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const zone = zoneOf(schedule.trigger) ?? myZone();
  const [from, setFrom] = useState(() => midnight(new Date(presently().getTime() - DAY_MS), zone));
  const [to, setTo] = useState(() => midnight(presently(), zone));
  const [reason, setReason] = useState("");
  const [made, setMade] = useState<Backfill | null>(null);
  const [isTried, setTried] = useState(false);
  const mayNotSteer = useWhyNot("operator");
  const backfill = useBackfill(schedule.schedule_id);
  const fromAt = instantAt(from, zone);
  const toAt = instantAt(to, zone);
  const own = new Map<string, string>();
  if (isTried && fromAt === null) own.set("/from_ts", "Say from when on.");
  if (isTried && toAt === null) own.set("/to_ts", "Say until when.");
  const problems = problemsOf(backfill.error, own, SHOWN);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (fromAt === null || toAt === null || backfill.isPending || mayNotSteer !== null) return;
    backfill.mutate({ from: fromAt, to: toAt, reason: reason.trim() }, { onSuccess: setMade });
  }

  return (
    <Dialog
      title={`Backfill ${schedule.name}`}
      description="Runs it for the times that it would have had in a range of the past, a few at a time."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      {made !== null ? (
        <div className="mt-4 flex flex-col gap-4">
          <BackfillLine backfill={made} zone={zone} />
          <p className="text-ink-soft text-sm">
            It goes on when you close this. The schedule shows how far it has come.
          </p>
          <div className="flex justify-end">
            <Button look="primary" onClick={onClose}>
              Close
            </Button>
          </div>
        </div>
      ) : (
        <form onSubmit={submit} noValidate className="mt-4 flex flex-col gap-4">
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              label="From"
              type="datetime-local"
              value={from}
              onChange={setFrom}
              problem={problems.byField.get("/from_ts") ?? null}
            />
            <TextField
              label="Up to, not including"
              type="datetime-local"
              value={to}
              onChange={setTo}
              problem={problems.byField.get("/to_ts") ?? null}
            />
          </div>
          <p className="text-ink-faint -mt-2 text-xs">In {zone}.</p>
          <TextField
            label="Reason"
            hint="Optional. Kept in the audit."
            value={reason}
            onChange={setReason}
            maxLength={1000}
            autoComplete="off"
            problem={problems.byField.get("/reason") ?? null}
          />
          <FormProblem text={problems.besides} />
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" look="primary" isBusy={backfill.isPending} whyNot={mayNotSteer}>
              Backfill
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

/** Running backfills and the latest ended ones, at most 3. Renders nothing if there are none. */
export function Backfills({ schedule }: { schedule: Schedule }) {
  const found = useQuery(backfillsOf(schedule.schedule_id));
  const items = found.data?.items ?? [];
  if (items.length === 0) {
    return null;
  }
  return (
    <section aria-label="Backfills" className="flex flex-col gap-2">
      <h3 className="text-sm font-semibold">Backfills</h3>
      {items.slice(0, 3).map((backfill) => (
        <BackfillLine
          key={backfill.backfill_id}
          backfill={backfill}
          zone={zoneOf(schedule.trigger) ?? myZone()}
        />
      ))}
    </section>
  );
}

interface Look {
  tone: Tone;
  icon: IconName;
  word: string;
}

function lookOf(backfill: Backfill): Look {
  if (backfill.state === "cancelled") return { tone: "calm", icon: "stop", word: "cancelled" };
  if (goesOn(backfill)) return { tone: "busy", icon: "spin", word: "running" };
  return { tone: "good", icon: "checkCircle", word: "done" };
}

/** Progress of one backfill, updated live. */
function BackfillLine({ backfill: known, zone }: { backfill: Backfill; zone: string }) {
  const backfill = useQuery(backfillWith(known)).data;
  const cancel = useCancelBackfill();
  const mayNotSteer = useWhyNot("operator");
  const look = lookOf(backfill);
  const ended = backfill.ended_count + backfill.existing_count;
  return (
    <div className="border-line bg-surface flex flex-col gap-2 rounded-lg border px-3 py-2.5 text-sm">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <Badge tone={look.tone} icon={look.icon} isSpinning={look.icon === "spin"}>
          {look.word}
        </Badge>
        <span>
          <Instant at={backfill.from_ts} zone={zone} /> to <Instant at={backfill.to_ts} zone={zone} />
        </span>
        {goesOn(backfill) && backfill.state === "running" && (
          <Button
            size="small"
            look="quiet danger"
            className="ml-auto"
            isBusy={cancel.isPending}
            whyNot={mayNotSteer}
            onClick={() => cancel.mutate(backfill.backfill_id)}
          >
            Cancel
          </Button>
        )}
      </div>
      <progress
        aria-label="How far it has come"
        max={Math.max(backfill.total_count, 1)}
        value={backfill.total_count === 0 ? 1 : ended}
        className="[&::-webkit-progress-bar]:bg-sunken [&::-webkit-progress-value]:bg-accent [&::-moz-progress-bar]:bg-accent bg-sunken h-1.5 w-full appearance-none overflow-hidden rounded-full"
      />
      <p className="text-ink-soft numbers text-xs" role="status">
        {count(ended)} of {count(backfill.total_count)} ended, {count(backfill.created_count)} made
        {backfill.existing_count > 0 && `, ${count(backfill.existing_count)} were there already`}
        {backfill.requested_by && ` · by ${backfill.requested_by}`}
      </p>
    </div>
  );
}
