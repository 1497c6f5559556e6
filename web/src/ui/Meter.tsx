interface Props {
  /** What is measured. */
  label: string;
  value: number;
  most: number;
  /** The value as text beside the bar. */
  words: string;
}

/** Share from which the meter is shown as nearly full. */
const HIGH = 0.9;

/** A bar that shows how much of something is in use. */
export function Meter({ label, value, most, words }: Props) {
  const share = most > 0 ? Math.min(1, Math.max(0, value / most)) : 0;
  return (
    <div className="flex min-w-0 items-center gap-2">
      {/* biome-ignore lint/a11y/useSemanticElements: <meter> can't be given our colours in every browser */}
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={most}
        aria-valuenow={value}
        aria-valuetext={words}
        className="bg-line h-1.5 min-w-8 grow overflow-hidden rounded-full"
      >
        <div
          className={`h-full rounded-full transition-[width] ${share >= HIGH ? "bg-(--status-timeout)" : "bg-accent"}`}
          style={{ width: `${share * 100}%` }}
        />
      </div>
      <span className="numbers text-ink-soft shrink-0 text-xs">{words}</span>
    </div>
  );
}
