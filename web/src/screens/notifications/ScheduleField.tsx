import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from "react";
import type { FieldProblem } from "@/api/problem";
import { schedulesLike } from "@/api/schedules";
import { ProblemLine } from "@/screens/schedule-form/controls";
import { StateBadge } from "@/ui/Badge";
import { IconButton } from "@/ui/Button";
import { Icon } from "@/ui/Icon";
import { useScheduleName } from "./parts";

interface Props {
  /** Schedule ids or names. */
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
  problem: FieldProblem | null;
  isFixed: boolean;
}

/** Search and select schedules by name. Ids are stored, so that a rule follows a renamed schedule. */
export function ScheduleField({ chosen, onChange, problem, isFixed }: Props) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const sought = useDeferredValue(typed.trim());
  const answer = useQuery({ ...schedulesLike(sought), enabled: isOpen, placeholderData: keepPreviousData });
  const found = (answer.data?.items ?? []).filter(
    (each) => !chosen.includes(each.schedule_id) && !chosen.includes(each.name),
  );
  const marked = found[Math.min(at, found.length - 1)];

  function choose(scheduleId: string) {
    onChange([...chosen, scheduleId]);
    setTyped("");
    setAt(0);
    setOpen(false);
  }

  function steer(event: KeyboardEvent) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) {
        setOpen(true);
        return;
      }
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(found.length, 1));
    } else if (event.key === "Enter") {
      event.preventDefault(); // Enter selects an item; it must not submit the form
      if (isOpen && marked !== undefined) choose(marked.schedule_id);
    }
  }

  // Handle Escape before the surrounding panel does: the same key closes the panel.
  useEffect(() => {
    if (!isOpen) return;
    function listen(event: globalThis.KeyboardEvent) {
      if (event.key === "Escape") {
        event.stopPropagation();
        setOpen(false);
      }
    }
    window.addEventListener("keydown", listen, { capture: true });
    return () => window.removeEventListener("keydown", listen, { capture: true });
  }, [isOpen]);

  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} className="text-sm font-medium">
        Schedules
      </label>
      {chosen.length > 0 && (
        <ul aria-label="Chosen schedules" className="flex flex-wrap gap-1.5">
          {chosen.map((named) => (
            <Chosen
              key={named}
              named={named}
              isFixed={isFixed}
              onRemove={() => onChange(chosen.filter((each) => each !== named))}
            />
          ))}
        </ul>
      )}
      <div className="relative">
        <input
          id={id}
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && marked ? `${id}-${marked.schedule_id}` : undefined}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-problem` : undefined}
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Find a schedule"
          value={typed}
          onClick={() => setOpen(true)}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
            setOpen(true);
          }}
          onBlur={() => setOpen(false)}
          onKeyDown={steer}
          className="border-control bg-surface placeholder:text-ink-faint aria-invalid:border-danger shadow-low h-9 w-full rounded-md border pr-2.5 pl-8 text-sm focus-visible:outline-offset-0"
        />
        <Icon
          name="search"
          size={14}
          className="text-ink-faint pointer-events-none absolute top-2.5 left-2.5"
        />
        {isOpen && (
          <div
            id={`${id}-list`}
            role="listbox"
            aria-label="Schedules"
            className="animate-rise border-line bg-raised shadow-high absolute inset-x-0 top-10 z-10 max-h-72 overflow-y-auto rounded-lg border p-1"
          >
            {found.map((each) => (
              <div
                key={each.schedule_id}
                id={`${id}-${each.schedule_id}`}
                role="option"
                tabIndex={-1}
                aria-selected={each === marked}
                // Pointer down comes before the input's blur, which closes the list.
                onPointerDown={(event) => {
                  event.preventDefault();
                  choose(each.schedule_id);
                }}
                className="aria-selected:bg-hover hover:bg-hover flex h-9 cursor-pointer items-center gap-2 rounded-md px-2.5 text-sm"
              >
                <span className="truncate">{each.name}</span>
                <span className="ml-auto">
                  <StateBadge state={each.state} />
                </span>
              </div>
            ))}
            {found.length === 0 && (
              <p className="text-ink-soft px-2.5 py-2 text-sm">
                {answer.isFetching ? "Looking…" : "No other schedule has these letters."}
              </p>
            )}
          </div>
        )}
      </div>
      <ProblemLine id={`${id}-problem`} problem={problem} />
    </div>
  );
}

function Chosen({ named, isFixed, onRemove }: { named: string; isFixed: boolean; onRemove: () => void }) {
  const name = useScheduleName(named);
  return (
    <li
      className={`bg-accent-soft text-accent inline-flex h-8 max-w-full min-w-0 items-center rounded-md pl-2.5 text-sm ${isFixed ? "pr-2.5" : ""}`}
    >
      <span className="truncate" title={name}>
        {name}
      </span>
      {!isFixed && <IconButton icon="close" label={`Without ${name}`} onClick={onRemove} />}
    </li>
  );
}
