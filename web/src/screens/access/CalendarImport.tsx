import { type FormEvent, useId, useState } from "react";
import { useImportCalendar } from "@/api/calendars";
import { problemBesides, problemOf } from "@/api/problem";
import { navigate } from "@/routing/location";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { toast } from "@/ui/Toasts";
import { countDays, rangesOf } from "./days";
import { ZoneField } from "./ZoneField";

/** Upload limit. The server accepts bodies of 1 MB, and encoding the file as JSON makes it longer. */
const MAX_BYTES = 900_000;

interface Props {
  /** Names of existing calendars. */
  taken: readonly string[];
  onClose: () => void;
}

/** Dialog that creates a calendar from the days covered by the events of an uploaded file. */
export function CalendarImport({ taken, onClose }: Props) {
  const id = useId();
  const bring = useImportCalendar();
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [zone, setZone] = useState("");
  const isTooLarge = file !== null && file.size > MAX_BYTES;
  const whyNot =
    file === null
      ? "Choose a file."
      : isTooLarge
        ? "The file is too large."
        : name.trim() === ""
          ? "Give it a name."
          : null;

  function choose(chosen: File | null) {
    setFile(chosen);
    bring.reset();
    if (chosen !== null && name === "") setName(chosen.name.replace(/\.[^.]*$/, "").slice(0, 126));
  }

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (bring.isPending || whyNot !== null || file === null) return;
    const ical = await file.text();
    bring.mutate(
      { name: name.trim(), ical, description, timezone: zone || null },
      {
        onSuccess: (made) => {
          const days = countDays(rangesOf(made.days ?? []));
          toast({ tone: "good", text: `Imported ${made.name}`, detail: `${days.toLocaleString("en")} days` });
          navigate(`/access/calendars?${new URLSearchParams({ calendar: made.name })}`, { replace: true });
        },
      },
    );
  }

  return (
    <Dialog
      title="Import a calendar"
      description="From an iCalendar file (.ics): the days that its events cover are excluded."
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <form onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <div className="flex flex-col gap-1">
          <label htmlFor={id} className="text-sm font-medium">
            File
          </label>
          <input
            id={id}
            type="file"
            accept=".ics,.ical,text/calendar"
            onChange={(event) => choose(event.target.files?.[0] ?? null)}
            aria-invalid={isTooLarge || undefined}
            aria-describedby={`${id}-hint`}
            className="border-control bg-surface file:bg-sunken file:text-ink file:border-line w-full rounded-md border text-sm file:mr-3 file:h-9 file:border-0 file:border-r file:px-3 file:text-sm file:font-medium"
          />
          <p id={`${id}-hint`} className={`text-xs ${isTooLarge ? "text-danger" : "text-ink-faint"}`}>
            {isTooLarge ? "Up to 900 kB: make the file smaller, or split it." : "Up to 900 kB."}
          </p>
          {problemOf(bring.error, "/ical") && (
            <p className="text-danger flex items-start gap-1.5 text-xs">
              <Icon name="warning" size={14} className="mt-0.5" />
              {problemOf(bring.error, "/ical")?.text} {problemOf(bring.error, "/ical")?.hint}
            </p>
          )}
        </div>
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          required
          maxLength={126}
          autoComplete="off"
          hint={taken.includes(name.trim()) ? "There is one of this name: it is replaced." : undefined}
          problem={problemOf(bring.error, "/name")}
        />
        <TextField
          label="Description"
          value={description}
          onChange={setDescription}
          maxLength={2000}
          autoComplete="off"
          problem={problemOf(bring.error, "/description")}
        />
        <ZoneField value={zone} onChange={setZone} problem={problemOf(bring.error, "/timezone")} />
        <FormProblem text={problemBesides(bring.error, ["/ical", "/name", "/description", "/timezone"])} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={bring.isPending} whyNot={whyNot}>
            Import
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
