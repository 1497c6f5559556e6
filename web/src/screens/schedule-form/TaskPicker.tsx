import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from "react";
import type { FieldProblem } from "@/api/problem";
import { type TaskFunction, taskFunctionsLike } from "@/api/schedule-editing";
import { Badge } from "@/ui/Badge";
import { Icon } from "@/ui/Icon";
import { ProblemLine } from "./controls";

interface Props {
  value: string;
  onChange: (name: string) => void;
  problem: FieldProblem | null;
  /** The selected task function. Null: not loaded, or unknown. */
  known: TaskFunction | null;
}

/** Search and select a task function by part of its name or description. */
export function TaskPicker({ value, onChange, problem, known }: Props) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  // Right after opening, list all functions instead of searching for the selected name.
  const sought = useDeferredValue(typed ?? "");
  const found = useQuery({ ...taskFunctionsLike(sought), enabled: isOpen }).data?.items ?? [];
  const marked = found[Math.min(at, found.length - 1)];

  function choose(name: string) {
    if (name !== value) onChange(name);
    setTyped(null);
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
      if (isOpen && marked !== undefined) choose(marked.name);
      else if (typed !== null) choose(typed.trim());
    }
  }

  // Handle Escape before the surrounding panel does: the same key closes the panel.
  useEffect(() => {
    if (!isOpen) return;
    function listen(event: globalThis.KeyboardEvent) {
      if (event.key === "Escape") {
        event.stopPropagation();
        setOpen(false);
        setTyped(null);
      }
    }
    window.addEventListener("keydown", listen, { capture: true });
    return () => window.removeEventListener("keydown", listen, { capture: true });
  }, [isOpen]);

  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        Task function
      </label>
      <div className="relative">
        <input
          id={id}
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && marked ? `${id}-${marked.name}` : undefined}
          aria-invalid={problem ? true : undefined}
          aria-describedby={`${id}-about`}
          autoComplete="off"
          spellCheck={false}
          placeholder="Find a task function"
          value={typed ?? value}
          onFocus={(event) => event.target.select()}
          onClick={() => setOpen(true)}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
            setOpen(true);
          }}
          onBlur={() => (typed === null ? setOpen(false) : choose(typed.trim()))}
          onKeyDown={steer}
          className="border-control bg-surface placeholder:text-ink-faint aria-invalid:border-danger shadow-low h-9 w-full rounded-md border pr-8 pl-2.5 text-sm focus-visible:outline-offset-0"
        />
        <Icon
          name="down"
          size={14}
          className="text-ink-faint pointer-events-none absolute top-2.5 right-2.5"
        />
        {isOpen && (
          <div
            id={`${id}-list`}
            role="listbox"
            aria-label="Task functions"
            className="animate-rise border-line bg-raised shadow-high absolute inset-x-0 top-10 z-10 max-h-72 overflow-y-auto rounded-lg border p-1"
          >
            {found.map((task) => (
              <Option
                key={task.name}
                id={`${id}-${task.name}`}
                task={task}
                isMarked={task === marked}
                onChoose={() => choose(task.name)}
              />
            ))}
            {found.length === 0 && (
              <p className="text-ink-soft px-2.5 py-2 text-sm">No task function has these letters.</p>
            )}
          </div>
        )}
      </div>
      <div id={`${id}-about`} className="flex flex-col gap-1">
        <ProblemLine problem={problem} />
        {known !== null && (
          <p className="text-ink-soft flex flex-wrap items-center gap-x-2 text-xs">
            <span>{known.description || known.display_name}</span>
            <Readiness task={known} />
          </p>
        )}
      </div>
    </div>
  );
}

interface OptionProps {
  id: string;
  task: TaskFunction;
  isMarked: boolean;
  onChoose: () => void;
}

function Option({ id, task, isMarked, onChoose }: OptionProps) {
  return (
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isMarked}
      // Pointer down comes before the input's blur, which closes the list.
      onPointerDown={(event) => {
        event.preventDefault();
        onChoose();
      }}
      className="aria-selected:bg-hover hover:bg-hover flex cursor-pointer flex-col rounded-md px-2.5 py-1.5"
    >
      <span className="flex items-center gap-2 text-sm font-medium">
        <span className="truncate font-mono text-xs">{task.name}</span>
        <span className="ml-auto">
          <Readiness task={task} />
        </span>
      </span>
      {task.description && <span className="text-ink-soft truncate text-xs">{task.description}</span>}
    </div>
  );
}

/** Whether the task function can run: switched off, or number of workers. */
function Readiness({ task }: { task: TaskFunction }) {
  if (!task.is_active) {
    return (
      <Badge tone="bad" icon="stop">
        switched off
      </Badge>
    );
  }
  if (task.worker_count === 0) {
    return (
      <Badge tone="warn" icon="warning">
        no worker has it now
      </Badge>
    );
  }
  return (
    <Badge tone="good" icon="check">
      {`${task.worker_count} ${task.worker_count === 1 ? "worker" : "workers"}`}
    </Badge>
  );
}
