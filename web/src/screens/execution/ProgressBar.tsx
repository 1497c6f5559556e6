import type { Progress } from "./words";

/** Progress of an execution: bar, percentage and text. */
export function ProgressBar({ progress, isSmall = false }: { progress: Progress; isSmall?: boolean }) {
  const { fraction, text } = progress;
  const percent = fraction === null ? null : Math.floor(fraction * 100);
  return (
    <div className="min-w-0">
      {!isSmall && (
        <p className="mb-1.5 flex gap-3 text-sm">
          <span className="truncate" title={text}>
            {text}
          </span>
          {percent !== null && <span className="numbers text-ink-soft ml-auto">{percent} %</span>}
        </p>
      )}
      {percent !== null && (
        <div
          role="progressbar"
          aria-label="Progress"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={percent}
          aria-valuetext={text ? `${percent} %, ${text}` : `${percent} %`}
          className={`bg-line overflow-hidden rounded-full ${isSmall ? "h-1" : "h-2"}`}
        >
          <div
            className="h-full rounded-full bg-(--status-running) transition-[width] duration-500"
            style={{ width: `${percent}%` }}
          />
        </div>
      )}
    </div>
  );
}
