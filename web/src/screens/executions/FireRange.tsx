import { type FormEvent, useState } from "react";
import { useZone } from "@/settings/zone";
import { presently } from "@/time/clock";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextField } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { localOf, rangeWords } from "./range";

const HOUR_MS = 3_600_000;
const RECENT = [
  { label: "The last hour", hours: 1 },
  { label: "The last 24 hours", hours: 24 },
  { label: "The last 7 days", hours: 168 },
];

interface Props {
  from: string;
  to: string;
  onChange: (range: { fire_from: string; fire_to: string }) => void;
}

/** Filter by a range of fire times. */
export function FireRange({ from, to, onChange }: Props) {
  const [isAsking, setAsking] = useState(false);
  const zone = useZone();
  const isGiven = from !== "" || to !== "";
  function since(hours: number) {
    const minute = 60_000;
    const at = Math.floor((presently().getTime() - hours * HOUR_MS) / minute) * minute;
    onChange({ fire_from: new Date(at).toISOString(), fire_to: "" });
  }
  return (
    <>
      <Menu
        align="start"
        button={
          <Button look={isGiven ? "plain" : "quiet"} className={isGiven ? "" : "border-line border-dashed"}>
            Fire time
            {isGiven && (
              <span className="numbers bg-accent-soft text-accent rounded px-1.5 text-xs">
                {rangeWords(from, to, zone, presently())}
              </span>
            )}
            <Icon name="down" size={12} className="text-ink-faint" />
          </Button>
        }
      >
        {RECENT.map(({ label, hours }) => (
          <MenuItem key={hours} onSelect={() => since(hours)}>
            {label}
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem onSelect={() => setAsking(true)}>From … to …</MenuItem>
        {isGiven && <MenuItem onSelect={() => onChange({ fire_from: "", fire_to: "" })}>Any time</MenuItem>}
      </Menu>
      {isAsking && (
        <RangeDialog
          from={from}
          to={to}
          onClose={() => setAsking(false)}
          onChange={(range) => {
            setAsking(false);
            onChange(range);
          }}
        />
      )}
    </>
  );
}

function RangeDialog({ from, to, onChange, onClose }: Props & { onClose: () => void }) {
  const [begin, setBegin] = useState(localOf(from));
  const [end, setEnd] = useState(localOf(to));
  const isBackwards = begin !== "" && end !== "" && end <= begin;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!isBackwards) onChange({ fire_from: instantOf(begin), fire_to: instantOf(end) });
  }
  return (
    <Dialog
      title="Fire times"
      description="In your time zone. Left empty: without an end on that side."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <TextField label="From" type="datetime-local" step={1} value={begin} onChange={setBegin} />
        <TextField
          label="Before"
          type="datetime-local"
          step={1}
          value={end}
          onChange={setEnd}
          problem={isBackwards ? { text: "Must lie after the beginning.", hint: "" } : null}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Show
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function instantOf(local: string): string {
  return local === "" ? "" : new Date(local).toISOString();
}
