import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from "react";
import { schedulesLike } from "@/api/schedules";
import { StateBadge } from "@/ui/Badge";
import { Palette } from "@/ui/Dialog";
import { Icon } from "@/ui/Icon";

interface Props {
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  onPick: (id: string) => void;
}

/** Dialog that searches for one schedule by part of its name. */
export function SchedulePicker({ isOpen, onOpenChange, onPick }: Props) {
  return (
    <Palette label="Choose a schedule" isOpen={isOpen} onOpenChange={onOpenChange}>
      <Choices
        onPick={(id) => {
          onOpenChange(false);
          onPick(id);
        }}
      />
    </Palette>
  );
}

function Choices({ onPick }: { onPick: (id: string) => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const sought = useDeferredValue(typed.trim());
  const found = useQuery({ ...schedulesLike(sought), placeholderData: keepPreviousData });
  const items = found.data?.items ?? [];
  const chosen = items[Math.min(at, items.length - 1)];

  useEffect(() => {
    if (chosen)
      document.getElementById(`${list}-${chosen.schedule_id}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen, list]);

  function steer(event: KeyboardEvent) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((Math.min(at, items.length - 1) + step + items.length) % Math.max(items.length, 1));
    } else if (event.key === "Enter" && chosen) {
      event.preventDefault();
      onPick(chosen.schedule_id);
    }
  }

  return (
    <>
      <div className="border-line flex items-center gap-2.5 border-b px-4">
        <Icon name="search" className="text-ink-faint" />
        <input
          role="combobox"
          aria-label="Executions of which schedule"
          aria-expanded
          aria-controls={list}
          aria-activedescendant={chosen && `${list}-${chosen.schedule_id}`}
          aria-autocomplete="list"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Executions of which schedule?"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={steer}
          className="placeholder:text-ink-faint h-12 w-full bg-transparent text-base focus-visible:outline-none"
        />
      </div>
      <div id={list} role="listbox" aria-label="Schedules" className="min-h-0 grow overflow-y-auto p-1.5">
        {items.map((each, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input above has the keys
          <div
            key={each.schedule_id}
            id={`${list}-${each.schedule_id}`}
            role="option"
            tabIndex={-1}
            aria-selected={each === chosen}
            onClick={() => onPick(each.schedule_id)}
            onPointerMove={() => setAt(index)}
            className="aria-selected:bg-hover flex h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm"
          >
            <span className="truncate">{each.name}</span>
            <span className="ml-auto">
              <StateBadge state={each.state} />
            </span>
          </div>
        ))}
        {items.length === 0 && (
          <p className="text-ink-soft px-3 py-6 text-center text-sm">
            {found.isFetching ? "Looking…" : "No schedule has these letters in its name or description."}
          </p>
        )}
      </div>
    </>
  );
}
