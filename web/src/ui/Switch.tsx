import { useId } from "react";
import { Tooltip } from "./Tooltip";

interface Props {
  /** What the switch turns on or off. */
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  whyNot?: string | null;
  isBusy?: boolean;
}

export function Switch({ label, isOn, onChange, whyNot = null, isBusy = false }: Props) {
  const reason = useId();
  const isOff = whyNot !== null || isBusy;
  const button = (
    <button
      type="button"
      role="switch"
      aria-checked={isOn}
      aria-label={label}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      aria-describedby={whyNot === null ? undefined : reason}
      onClick={() => !isOff && onChange(!isOn)}
      className="relative flex h-6 w-8 items-center aria-disabled:cursor-not-allowed aria-disabled:opacity-50"
    >
      <span
        className={`inline-block h-4.5 w-8 rounded-full border transition-colors ${isOn ? "border-accent bg-accent" : "border-control bg-sunken"}`}
      />
      <span
        className={`absolute size-3 rounded-full transition-transform ${isOn ? "bg-on-accent translate-x-4" : "bg-control translate-x-0.75"}`}
      />
    </button>
  );
  if (whyNot === null) {
    return button;
  }
  return (
    <>
      <Tooltip text={whyNot}>{button}</Tooltip>
      <span id={reason} className="sr-only">
        {whyNot}
      </span>
    </>
  );
}
