import type { MouseEvent } from "react";
import { Icon } from "./Icon";

interface Props {
  label: string;
  isChecked: boolean;
  /** Indeterminate: only some of the items that it stands for are checked. */
  isPartly?: boolean;
  /** Receives the click event, so that the caller can check for Shift. */
  onClick: (event: MouseEvent<HTMLInputElement>) => void;
}

export function Checkbox({ label, isChecked, isPartly = false, onClick }: Props) {
  return (
    // The click area is larger than the box.
    <label className="relative -m-1.5 grid size-7 cursor-pointer place-items-center">
      <input
        type="checkbox"
        aria-label={label}
        checked={isChecked}
        onChange={() => {}}
        onClick={onClick}
        ref={(element) => {
          if (element !== null) element.indeterminate = isPartly;
        }}
        className="border-control bg-surface checked:border-accent checked:bg-accent indeterminate:border-accent indeterminate:bg-accent size-4 cursor-pointer appearance-none rounded border"
      />
      {isPartly ? (
        <span className="bg-on-accent pointer-events-none absolute h-0.5 w-2 rounded-full" />
      ) : (
        isChecked && <Icon name="check" size={12} className="text-on-accent pointer-events-none absolute" />
      )}
    </label>
  );
}
