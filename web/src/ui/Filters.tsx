// Filters of a list. The screen that shows them keeps their values in the address.

import { type ReactNode, useEffect, useState } from "react";
import { Button, IconButton } from "./Button";
import { Icon } from "./Icon";
import { Menu, MenuCheckItem, MenuChoice, MenuLabel } from "./Menu";

const TYPING_MS = 250;

interface BarProps {
  label: string;
  search: ReactNode;
  /** Facets and chips. */
  children: ReactNode;
  /** Null: there is nothing to clear. */
  onClear: (() => void) | null;
}

/** The filters of a list in one line. On narrow screens they scroll sideways. */
export function FilterBar({ label, search, children, onClear }: BarProps) {
  return (
    <search aria-label={label} className="mb-3 flex flex-col gap-2 sm:flex-row sm:flex-wrap sm:items-center">
      {search}
      <div className="-mx-4 flex items-center gap-1.5 overflow-x-auto px-4 py-0.5 sm:mx-0 sm:flex-wrap sm:overflow-visible sm:p-0">
        {children}
        {onClear && (
          <Button look="quiet" onClick={onClear}>
            Clear
          </Button>
        )}
      </div>
    </search>
  );
}

interface SearchBoxProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/** Search field. It calls `onChange` when the user stops typing. */
export function SearchBox({ label, value, onChange }: SearchBoxProps) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]); // the address was changed elsewhere
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => onChange(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  return (
    <div className="relative min-w-0 grow sm:max-w-72">
      <Icon name="search" size={14} className="text-ink-faint absolute top-1/2 left-2.5 -translate-y-1/2" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        maxLength={200}
        className="border-control bg-surface placeholder:text-ink-faint h-8 w-full rounded-md border pr-2 pl-8 text-sm shadow-low focus-visible:outline-offset-0"
      />
    </div>
  );
}

interface FacetProps<T extends string> {
  label: string;
  choices: readonly { value: T; label: string }[];
  chosen: readonly T[];
  onChange: (chosen: readonly T[]) => void;
}

/** Filter menu in which several values can be chosen. */
export function Facet<T extends string>({ label, choices, chosen, onChange }: FacetProps<T>) {
  const words = chosen
    .map((value) => choices.find((each) => each.value === value)?.label ?? value)
    .join(", ");
  return (
    <Menu
      align="start"
      button={
        <Button
          look={chosen.length > 0 ? "plain" : "quiet"}
          className={chosen.length > 0 ? "" : "border-line border-dashed"}
        >
          {label}
          {chosen.length > 0 && (
            <span className="bg-accent-soft text-accent max-w-32 truncate rounded px-1.5 text-xs">
              {words}
            </span>
          )}
          <Icon name="down" size={12} className="text-ink-faint" />
        </Button>
      }
    >
      <MenuLabel>{label}: any of</MenuLabel>
      {choices.map((choice) => (
        <MenuCheckItem
          key={choice.value}
          isChecked={chosen.includes(choice.value)}
          onChange={(isChecked) =>
            onChange(isChecked ? [...chosen, choice.value] : chosen.filter((each) => each !== choice.value))
          }
        >
          {choice.label}
        </MenuCheckItem>
      ))}
    </Menu>
  );
}

interface SortProps<T extends string> {
  value: T;
  choices: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
}

/** Sort menu for narrow screens, where lists have no column headings. */
export function SortMenu<T extends string>({ value, choices, onChange }: SortProps<T>) {
  return (
    <div className="md:hidden">
      <Menu
        align="start"
        button={
          <Button look="quiet" icon="sort">
            {choices.find((choice) => choice.value === value)?.label ?? "Sort"}
          </Button>
        }
      >
        <MenuChoice label="Sort by" value={value} choices={choices} onChange={onChange} />
      </Menu>
    </div>
  );
}

/** A removable chip for a filter that has no control of its own. */
export function FilterChip({ label, onRemove }: { label: string; onRemove: () => void }) {
  return (
    <span className="bg-accent-soft text-accent inline-flex h-8 items-center rounded-md pl-2.5 text-sm">
      {label}
      <IconButton icon="close" label={`Without ${label}`} onClick={onRemove} />
    </span>
  );
}

export function words<T extends string>(values: readonly T[]): { value: T; label: string }[] {
  return values.map((value) => ({ value, label: value }));
}
