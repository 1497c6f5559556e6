import type { MouseEvent } from "react";

interface Props {
  label: string;
  isChecked: boolean;
  /** Some of those that it stands for are, and some are not. */
  isPartly?: boolean;
  /** Gets the click itself, for those who ask whether Shift was held. */
  onClick: (event: MouseEvent<HTMLInputElement>) => void;
}

export function Checkbox({ label, isChecked, isPartly = false, onClick }: Props) {
  return (
    // The area to hit is larger than the box.
    <label className="-m-1.5 inline-flex cursor-pointer p-1.5">
      <input
        type="checkbox"
        aria-label={label}
        checked={isChecked}
        onChange={() => {}}
        onClick={onClick}
        ref={(element) => {
          if (element !== null) element.indeterminate = isPartly;
        }}
        className="accent-accent size-4 cursor-pointer rounded"
      />
    </label>
  );
}
