import type { Steady } from "./steady";

/** Says what has changed in the list and is not shown yet: rows stay where they are until the reader wants. */
export function NewsBar<Row>({ steady }: { steady: Steady<Row> & { show: () => void } }) {
  const parts = [
    steady.arrived > 0 ? `${steady.arrived} new` : "",
    steady.gone.size > 0 ? `${steady.gone.size} no longer here` : "",
  ].filter(Boolean);
  const hasNews = parts.length > 0 || steady.isReordered;
  return (
    <div role="status" className="contents">
      {hasNews && (
        <button
          type="button"
          onClick={steady.show}
          className={`border-line hover:bg-hover w-full rounded-t-lg border-b px-4 py-1.5 text-center text-xs font-medium focus-visible:-outline-offset-2 ${
            parts.length > 0 ? "bg-accent-soft text-accent" : "text-ink-soft"
          }`}
        >
          {parts.length > 0 ? `${parts.join(", ")} — show` : "The order has changed — sort again"}
        </button>
      )}
    </div>
  );
}
