import { type FormEvent, type KeyboardEvent, useId, useRef, useState } from "react";
import type { FieldProblem } from "@/api/problem";
import { myZone } from "@/settings/zone";
import { presently } from "@/time/clock";
import { calendarDay } from "@/time/format";
import { Button, IconButton } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import {
  countDays,
  dayWords,
  has,
  isDay,
  merged,
  monthAfter,
  monthWords,
  type Range,
  rangeWords,
  shifted,
  toggled,
  weekdayOf,
  weeksOf,
  without,
} from "./days";

export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
const MAX_LISTED = 30;

interface Props {
  ranges: readonly Range[];
  onChange: (ranges: Range[]) => void;
  /** Weekdays that are excluded every week. They are shown, but can't be changed here. */
  weekdays: readonly number[];
  problem: FieldProblem | null;
  isFixed: boolean;
}

/** Pick days in a month view, add ranges, and list everything that is selected. */
export function DayPicker({ ranges, onChange, weekdays, problem, isFixed }: Props) {
  const today = calendarDay(presently(), myZone());
  const [shown, setShown] = useState(() => firstShown(ranges, today));
  return (
    <div className="flex flex-col gap-4">
      <div className="grid gap-x-6 gap-y-4 sm:grid-cols-[17rem_minmax(0,1fr)]">
        <Month
          month={shown}
          onMonth={setShown}
          today={today}
          ranges={ranges}
          weekdays={weekdays}
          isFixed={isFixed}
          onToggle={(day) => onChange(toggled(ranges, day))}
        />
        <div className="flex min-w-0 flex-col gap-4">
          {!isFixed && (
            <AddRange
              onAdd={(range) => {
                onChange(merged([...ranges, range]));
                setShown(range.from.slice(0, 7));
              }}
            />
          )}
          <Chosen
            ranges={ranges}
            isFixed={isFixed}
            onShow={(range) => setShown(range.from.slice(0, 7))}
            onRemove={(range) => onChange(without(ranges, range))}
          />
        </div>
      </div>
      {problem && <p className="text-danger text-xs">{`${problem.text} ${problem.hint}`}</p>}
    </div>
  );
}

/** The month of the next selected day, else the current month. */
function firstShown(ranges: readonly Range[], today: string): string {
  const next = ranges.find(({ to }) => to >= today);
  return (next === undefined || next.from < today ? today : next.from).slice(0, 7);
}

interface MonthProps {
  month: string;
  onMonth: (month: string) => void;
  today: string;
  ranges: readonly Range[];
  weekdays: readonly number[];
  isFixed: boolean;
  onToggle: (day: string) => void;
}

/** Month grid. Keyboard: arrow keys move between days and months, Space and Enter select. */
function Month({ month, onMonth, today, ranges, weekdays, isFixed, onToggle }: MonthProps) {
  const table = useRef<HTMLTableElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const stop = active?.startsWith(month) ? active : today.startsWith(month) ? today : `${month}-01`;

  function move(event: KeyboardEvent) {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const day = shifted(stop, step);
    setActive(day);
    if (!day.startsWith(month)) onMonth(day.slice(0, 7));
    requestAnimationFrame(() => table.current?.querySelector<HTMLElement>(`[data-day="${day}"]`)?.focus());
  }

  return (
    <div>
      <div className="mb-1 flex items-center">
        <h4 aria-live="polite" className="grow text-sm font-medium">
          {monthWords(month)}
        </h4>
        <IconButton icon="left" label="Month before" onClick={() => onMonth(monthAfter(month, -1))} />
        <IconButton icon="right" label="Month after" onClick={() => onMonth(monthAfter(month, 1))} />
      </div>
      <table
        ref={table}
        className="w-full table-fixed text-center text-sm"
        aria-label={`Days of ${monthWords(month)}`}
      >
        <thead className="text-ink-soft text-xs">
          <tr>
            {WEEKDAYS.map((name) => (
              <th key={name} scope="col" className="h-6 font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={move}>
          {weeksOf(month).map((week) => (
            <tr key={week.find((day) => day !== null)}>
              {week.map((day, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a week has its seven places
                <td key={index} className="p-0.5">
                  {day !== null && (
                    <Day
                      day={day}
                      isChosen={has(ranges, day)}
                      isWeekly={weekdays.includes(weekdayOf(day))}
                      isToday={day === today}
                      isFixed={isFixed}
                      isStop={day === stop}
                      onToggle={() => {
                        setActive(day);
                        onToggle(day);
                      }}
                    />
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface DayProps {
  day: string;
  isChosen: boolean;
  isWeekly: boolean;
  isToday: boolean;
  isFixed: boolean;
  isStop: boolean;
  onToggle: () => void;
}

function Day({ day, isChosen, isWeekly, isToday, isFixed, isStop, onToggle }: DayProps) {
  const look = isChosen
    ? "bg-accent text-on-accent font-semibold"
    : isWeekly
      ? "bg-calm-soft text-ink-soft line-through"
      : "hover:bg-hover";
  return (
    <button
      type="button"
      data-day={day}
      tabIndex={isStop ? 0 : -1}
      aria-pressed={isChosen}
      aria-current={isToday ? "date" : undefined}
      aria-label={`${dayWords(day)}${isWeekly ? ", excluded every week" : ""}`}
      aria-disabled={isFixed || undefined}
      onClick={() => !isFixed && onToggle()}
      className={`numbers h-7 w-full rounded-md ${look} ${isToday && !isChosen ? "text-accent font-semibold" : ""}`}
    >
      {Number(day.slice(8))}
    </button>
  );
}

function AddRange({ onAdd }: { onAdd: (range: Range) => void }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const last = to === "" ? from : to;
  const isBackward = isDay(from) && isDay(last) && last < from;
  const whyNot = !isDay(from)
    ? "Say the first day."
    : isBackward
      ? "The last day is before the first."
      : null;
  function add(event?: FormEvent) {
    event?.preventDefault();
    if (whyNot !== null) return;
    onAdd({ from, to: last });
    setFrom("");
    setTo("");
  }
  return (
    <div className="flex flex-col gap-2">
      <div className="grid grid-cols-2 gap-2">
        <TextField label="First day" type="date" value={from} onChange={setFrom} />
        <TextField
          label="Last day"
          type="date"
          value={to}
          onChange={setTo}
          min={from}
          problem={isBackward ? { text: "Before the first.", hint: "" } : null}
        />
      </div>
      <Button icon="plus" className="self-start" whyNot={whyNot} onClick={() => add()}>
        Add days
      </Button>
    </div>
  );
}

interface ChosenProps {
  ranges: readonly Range[];
  isFixed: boolean;
  onShow: (range: Range) => void;
  onRemove: (range: Range) => void;
}

function Chosen({ ranges, isFixed, onShow, onRemove }: ChosenProps) {
  const id = useId();
  const [isAll, setAll] = useState(false);
  const listed = isAll ? ranges : ranges.slice(0, MAX_LISTED);
  const days = countDays(ranges);
  return (
    <section aria-labelledby={id}>
      <h4 id={id} className="text-ink-soft mb-1 text-xs">
        {days === 0
          ? "No single day is chosen"
          : `${days.toLocaleString("en")} ${days === 1 ? "day" : "days"} chosen`}
      </h4>
      <ul className="border-line divide-line max-h-48 divide-y overflow-y-auto rounded-md empty:hidden [&:not(:empty)]:border">
        {listed.map((range) => (
          <li key={range.from} className="flex h-8 items-center pl-2.5 text-sm">
            <button
              type="button"
              className="numbers min-w-0 grow truncate rounded text-left hover:underline"
              onClick={() => onShow(range)}
            >
              {rangeWords(range)}
            </button>
            {!isFixed && (
              <IconButton
                icon="close"
                label={`Remove ${rangeWords(range)}`}
                side="left"
                onClick={() => onRemove(range)}
              />
            )}
          </li>
        ))}
      </ul>
      {ranges.length > listed.length && (
        <Button look="link" size="small" onClick={() => setAll(true)}>
          {ranges.length - listed.length} more
        </Button>
      )}
    </section>
  );
}
