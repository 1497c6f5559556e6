import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { type Calendar, type CalendarSpec, calendar, schedulesWith, useSetCalendar } from "@/api/calendars";
import { type FieldProblem, ProblemError, problemBesides, problemOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { Link } from "@/routing/Link";
import { Button } from "@/ui/Button";
import { Sheet } from "@/ui/Dialog";
import { FormProblem, TextField } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { toast } from "@/ui/Toasts";
import { countryName } from "./calendar-words";
import { DayPicker, WEEKDAYS } from "./DayPicker";
import { type Range, rangesOf, writtenAs } from "./days";
import { ZoneField } from "./ZoneField";

type Country = CalendarSpec["countries"][number];

const BLANK: CalendarSpec = {
  name: "",
  description: "",
  timezone: null,
  days: [],
  weekdays: [],
  countries: [],
};
const MAX_COUNTRIES = 50;

interface Props {
  /** Null: a new calendar. */
  name: string | null;
  onDelete?: () => void;
  onClose: () => void;
}

/** Panel to view and edit one calendar. */
export function CalendarSheet({ name, onDelete, onClose }: Props) {
  const found = useQuery({ ...calendar(name ?? ""), enabled: name !== null, refetchInterval: 10_000 });
  const mayNotEdit = useWhyNot("editor");
  const isUnknown = found.error instanceof ProblemError && found.error.status === 404;
  return (
    <Sheet
      title={name ?? "New calendar"}
      description={name === null ? "Days on which schedules that name it do not fire." : undefined}
      actions={
        found.data &&
        onDelete && (
          <Button look="quiet danger" icon="trash" whyNot={mayNotEdit} onClick={onDelete}>
            Delete…
          </Button>
        )
      }
      onClose={onClose}
    >
      {name === null ? (
        <Form from={BLANK} isNew onClose={onClose} />
      ) : found.data ? (
        <Edited found={found.data} onClose={onClose} />
      ) : isUnknown ? (
        <EmptyState icon="question" title="There is no calendar of this name" />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-96" />
      )}
    </Sheet>
  );
}

/** Edits a snapshot of the calendar. If someone else changes it, a notice offers to load the new version. */
function Edited({ found, onClose }: { found: Calendar; onClose: () => void }) {
  const [base, setBase] = useState(found);
  return (
    <Form
      key={base.updated_ts}
      from={specOf(base)}
      isNew={false}
      newer={
        found.updated_ts === base.updated_ts ? null : { by: found.updated_by, take: () => setBase(found) }
      }
      onClose={onClose}
    />
  );
}

/** The fields of a calendar that users can edit. */
function specOf(found: Partial<CalendarSpec> & { name: string }): CalendarSpec {
  return {
    name: found.name,
    description: found.description ?? "",
    timezone: found.timezone ?? null,
    days: found.days ?? [],
    weekdays: found.weekdays ?? [],
    countries: found.countries ?? [],
  };
}

interface FormProps {
  from: CalendarSpec;
  isNew: boolean;
  /** A version saved by someone else since this one was loaded. `take` loads it. Null: none. */
  newer?: { by: string | null; take: () => void } | null;
  onClose: () => void;
}

function Form({ from, isNew, newer = null, onClose }: FormProps) {
  const save = useSetCalendar();
  const mayNotEdit = useWhyNot("editor");
  const [name, setName] = useState(from.name);
  const [description, setDescription] = useState(from.description);
  const [zone, setZone] = useState(from.timezone ?? "");
  const [ranges, setRanges] = useState<Range[]>(() => rangesOf(from.days));
  const [weekdays, setWeekdays] = useState<readonly number[]>(from.weekdays);
  const [countries, setCountries] = useState<readonly Country[]>(from.countries);
  const made: CalendarSpec = {
    name: name.trim(),
    description,
    timezone: zone.trim() || null,
    days: writtenAs(ranges),
    weekdays: [...weekdays],
    countries: [...countries],
  };
  const isSame =
    !isNew && JSON.stringify(made) === JSON.stringify({ ...from, days: writtenAs(rangesOf(from.days)) });
  const whyNot = mayNotEdit ?? (made.name === "" ? "Give it a name." : isSame ? "Nothing is changed." : null);
  const isFixed = mayNotEdit !== null;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (save.isPending || whyNot !== null) return;
    save.mutate(
      { spec: made, replaces: !isNew },
      {
        onSuccess: () => {
          toast({ tone: "good", text: isNew ? `Made ${made.name}` : `Saved ${made.name}` });
          onClose();
        },
      },
    );
  }

  const shown = [
    "/name",
    "/description",
    "/timezone",
    "/days",
    "/weekdays",
    ...countries.flatMap((_, index) =>
      ["", "/country", "/subdivision", "/categories"].map((part) => `/countries/${index}${part}`),
    ),
  ];
  return (
    <form onSubmit={submit} className="flex flex-col gap-6">
      <fieldset disabled={isFixed} className="flex flex-col gap-4">
        {isNew && (
          <TextField
            label="Name"
            hint="Schedules refer to it by this."
            value={name}
            onChange={setName}
            maxLength={126}
            required
            autoComplete="off"
            problem={problemOf(save.error, "/name")}
          />
        )}
        <TextField
          label="Description"
          value={description}
          onChange={setDescription}
          maxLength={2000}
          autoComplete="off"
          problem={problemOf(save.error, "/description")}
        />
        <ZoneField value={zone} onChange={setZone} problem={problemOf(save.error, "/timezone")} />
      </fieldset>
      <Part title="Every week">
        <Weekdays
          chosen={weekdays}
          onChange={setWeekdays}
          isFixed={isFixed}
          problem={problemOf(save.error, "/weekdays")}
        />
      </Part>
      <Part title="Public holidays">
        <fieldset disabled={isFixed} className="flex flex-col gap-3">
          {countries.map((country, index) => (
            <CountryFields
              // biome-ignore lint/suspicious/noArrayIndexKey: they have no names before they are written
              key={index}
              index={index}
              country={country}
              error={save.error}
              onChange={(changed) => setCountries(countries.with(index, changed))}
              onRemove={() => setCountries(countries.toSpliced(index, 1))}
            />
          ))}
          <Button
            icon="plus"
            className="self-start"
            whyNot={
              mayNotEdit ?? (countries.length >= MAX_COUNTRIES ? `Up to ${MAX_COUNTRIES} countries.` : null)
            }
            onClick={() => setCountries([...countries, { country: "", subdivision: null, categories: [] }])}
          >
            Add a country
          </Button>
        </fieldset>
      </Part>
      <Part title="Single days">
        <DayPicker
          ranges={ranges}
          onChange={setRanges}
          weekdays={weekdays}
          isFixed={isFixed}
          problem={problemOf(save.error, "/days")}
        />
      </Part>
      {!isNew && (
        <Part title="Used by">
          <UsedBy name={from.name} />
        </Part>
      )}
      <div className="border-line bg-surface sticky -bottom-4 -mx-5 -mb-4 flex flex-col gap-3 border-t px-5 py-3">
        <FormProblem text={problemBesides(save.error, shown)} />
        {/* The user's own save also looks like a newer version until this panel closes. */}
        {newer !== null && !save.isPending && !save.isSuccess && (
          <div
            role="status"
            className="bg-warn-soft text-warn flex items-center gap-2 rounded-md px-3 py-2 text-sm"
          >
            <Icon name="warning" />
            <span className="min-w-0 grow">
              {newer.by ?? "Somebody"} has changed it meanwhile. Saving replaces that.
            </span>
            <Button size="small" onClick={newer.take}>
              Take theirs
            </Button>
          </div>
        )}
        <div className="flex items-center justify-end gap-2">
          {!isNew && (
            <span className="text-ink-soft mr-auto text-xs">
              Schedules follow it from their next time on.
            </span>
          )}
          <Button onClick={onClose}>{isFixed ? "Close" : "Cancel"}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending} whyNot={whyNot}>
            {isNew ? "Make the calendar" : "Save"}
          </Button>
        </div>
      </div>
    </form>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  );
}

interface WeekdaysProps {
  chosen: readonly number[];
  onChange: (chosen: readonly number[]) => void;
  isFixed: boolean;
  problem: FieldProblem | null;
}

function Weekdays({ chosen, onChange, isFixed, problem }: WeekdaysProps) {
  return (
    <fieldset disabled={isFixed}>
      <legend className="sr-only">Weekdays that are excluded</legend>
      <div className="flex flex-wrap gap-1.5">
        {WEEKDAYS.map((name, index) => {
          const day = index + 1;
          const isChosen = chosen.includes(day);
          return (
            <label
              key={name}
              className="border-control has-checked:border-accent has-checked:bg-accent has-checked:text-on-accent has-focus-visible:outline-ring grid h-8 min-w-12 cursor-pointer place-items-center rounded-md border px-2 text-sm font-medium has-focus-visible:outline-2 has-focus-visible:outline-offset-2"
            >
              <input
                type="checkbox"
                className="sr-only"
                checked={isChosen}
                onChange={() =>
                  onChange(isChosen ? chosen.filter((each) => each !== day) : [...chosen, day].sort())
                }
              />
              {name}
            </label>
          );
        })}
      </div>
      {problem && <p className="text-danger mt-1 text-xs">{`${problem.text} ${problem.hint}`}</p>}
    </fieldset>
  );
}

interface CountryProps {
  index: number;
  country: Country;
  error: unknown;
  onChange: (country: Country) => void;
  onRemove: () => void;
}

function CountryFields({ index, country, error, onChange, onRemove }: CountryProps) {
  const [categories, setCategories] = useState((country.categories ?? []).join(", "));
  const at = `/countries/${index}`;
  return (
    <fieldset className="border-line rounded-lg border p-3">
      <legend className="sr-only">Country {index + 1}</legend>
      <div className="grid gap-3 sm:grid-cols-[9rem_8rem_minmax(0,1fr)_auto] sm:items-start">
        <TextField
          label="Country"
          value={country.country}
          onChange={(value) => onChange({ ...country, country: value.toUpperCase() })}
          maxLength={2}
          required
          placeholder="DE"
          autoComplete="off"
          hint={countryName(country.country) ?? "Two letters"}
          problem={problemOf(error, `${at}/country`) ?? problemOf(error, at)}
        />
        <TextField
          label="Part of it"
          value={country.subdivision ?? ""}
          onChange={(value) => onChange({ ...country, subdivision: value.trim() || null })}
          maxLength={100}
          placeholder="BY"
          autoComplete="off"
          hint="Optional"
          problem={problemOf(error, `${at}/subdivision`)}
        />
        <TextField
          label="Kinds"
          value={categories}
          onChange={(value) => {
            setCategories(value);
            onChange({ ...country, categories: value.split(",").flatMap((each) => each.trim() || []) });
          }}
          placeholder="public"
          autoComplete="off"
          hint="Such as public, bank, school. Left empty: the public ones."
          problem={problemOf(error, `${at}/categories`)}
        />
        <Button look="quiet danger" icon="close" className="self-start sm:mt-6" onClick={onRemove}>
          Remove
        </Button>
      </div>
    </fieldset>
  );
}

function UsedBy({ name }: { name: string }) {
  const users = useQuery(schedulesWith(name));
  if (users.data === undefined) return <Skeleton className="h-6" />;
  if (users.data.items.length === 0) {
    return <p className="text-ink-soft text-sm">No schedule.</p>;
  }
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
      {users.data.items.map((schedule) => (
        <li key={schedule.schedule_id}>
          <Link href={`/schedules/${schedule.schedule_id}`} className="text-accent rounded hover:underline">
            {schedule.name}
          </Link>
        </li>
      ))}
      {users.data.next_page_token !== "" && (
        <li>
          <Link
            href={`/schedules?${new URLSearchParams({ calendar: name })}`}
            className="text-accent rounded hover:underline"
          >
            all of them
          </Link>
        </li>
      )}
    </ul>
  );
}
