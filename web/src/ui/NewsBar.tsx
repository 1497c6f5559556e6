import type { Steady } from "./steady";

/** Shows which changes of a list are not displayed yet. It floats over the list, so that rows do not move. */
export function NewsBar<Row>({ steady }: { steady: Steady<Row> & { show: () => void } }) {
  const parts = [
    steady.arrived > 0 ? `${steady.arrived} new` : "",
    steady.gone.size > 0 ? `${steady.gone.size} no longer here` : "",
  ].filter(Boolean);
  const hasNews = parts.length > 0;
  return (
    <div role="status" className="sticky top-16 z-20 flex h-0 justify-center">
      {(hasNews || steady.isReordered) && (
        <button
          type="button"
          onClick={steady.show}
          className={`animate-appear shadow-high h-6 -translate-y-1/2 rounded-full border px-3 text-xs font-medium ${
            hasNews
              ? "border-transparent bg-accent text-on-accent hover:bg-accent-strong"
              : "border-line-strong bg-raised text-ink-soft hover:text-ink"
          }`}
        >
          {hasNews ? `${parts.join(", ")} — show` : "Order has changed — sort again"}
        </button>
      )}
    </div>
  );
}
