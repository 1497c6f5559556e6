import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useState } from "react";
import { schedulesLike } from "@/api/schedules";
import type { ScheduleState } from "@/api/types";
import { navigate } from "@/routing/location";
import { StateBadge } from "@/ui/Badge";
import { Palette } from "@/ui/Dialog";
import { Icon, type IconName } from "@/ui/Icon";
import { PLACES } from "./places";

interface Found {
  key: string;
  href: string;
  icon: IconName;
  name: string;
  aside?: React.ReactNode;
}

interface Props {
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
}

/** Search dialog for schedules and screens, available on every page. */
export function QuickFinder({ isOpen, onOpenChange }: Props) {
  return (
    <Palette label="Find" isOpen={isOpen} onOpenChange={onOpenChange}>
      <Finder
        onGo={(href) => {
          onOpenChange(false);
          navigate(href);
        }}
      />
    </Palette>
  );
}

function Finder({ onGo }: { onGo: (href: string) => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const sought = useDeferredValue(typed.trim());
  const schedules = useQuery({ ...schedulesLike(sought), placeholderData: keepPreviousData });
  const found = itemsFor(sought, schedules.data?.items ?? []);
  const chosen = found[Math.min(at, found.length - 1)];

  useEffect(() => {
    if (chosen !== undefined)
      document.getElementById(`found-${chosen.key}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  function steer(event: KeyboardEvent) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(found.length, 1));
    } else if (event.key === "Enter" && chosen !== undefined) {
      event.preventDefault();
      onGo(chosen.href);
    }
  }

  return (
    <>
      <div className="border-line flex items-center gap-2.5 border-b px-4">
        <Icon name="search" className="text-ink-faint" />
        <input
          role="combobox"
          aria-label="Find a schedule or a screen"
          aria-expanded
          aria-controls="found"
          aria-activedescendant={chosen && `found-${chosen.key}`}
          aria-autocomplete="list"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Find a schedule or a screen"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={steer}
          className="placeholder:text-ink-faint h-12 w-full bg-transparent text-base focus-visible:outline-none"
        />
      </div>
      <div id="found" role="listbox" aria-label="Found" className="min-h-0 grow overflow-y-auto p-1.5">
        {found.map((each) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input above has the keys
          <div
            key={each.key}
            id={`found-${each.key}`}
            role="option"
            tabIndex={-1}
            aria-selected={each === chosen}
            onClick={() => onGo(each.href)}
            onPointerMove={() => setAt(found.indexOf(each))}
            className="aria-selected:bg-hover flex h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm"
          >
            <Icon name={each.icon} className="text-ink-faint" />
            <span className="truncate">{each.name}</span>
            <span className="ml-auto">{each.aside}</span>
          </div>
        ))}
        {found.length === 0 && (
          <p className="text-ink-soft px-3 py-6 text-center text-sm">
            {schedules.isFetching ? "Looking…" : "Nothing has these letters in its name or description."}
          </p>
        )}
      </div>
      <p className="border-line text-ink-faint hidden gap-4 border-t px-4 py-2 text-xs sm:flex">
        <span>↑ ↓ to choose</span>
        <span>Enter to open</span>
        <span>Esc to close</span>
      </p>
    </>
  );
}

interface Listed {
  schedule_id: string;
  name: string;
  state: ScheduleState;
}

function itemsFor(sought: string, schedules: readonly Listed[]): Found[] {
  const letters = sought.toLowerCase();
  const places = PLACES.filter((place) => place.name.toLowerCase().includes(letters)).map((place) => ({
    key: place.path,
    href: place.path,
    icon: place.icon,
    name: place.name,
    aside: <span className="text-ink-faint text-xs">Screen</span>,
  }));
  const named = schedules.map((schedule) => ({
    key: schedule.schedule_id,
    href: `/schedules/${schedule.schedule_id}`,
    icon: "clock" as const,
    name: schedule.name,
    aside: <StateBadge state={schedule.state} />,
  }));
  return sought === "" ? [...places, ...named] : [...named, ...places];
}
