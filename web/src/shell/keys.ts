const isApple = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The keys that open the finder, as labelled on the user's keyboard. */
export function findKeys(): string {
  return isApple ? "⌘ K" : "Ctrl K";
}

export function opensFinder(event: KeyboardEvent): boolean {
  return (
    event.key.toLowerCase() === "k" &&
    (isApple ? event.metaKey : event.ctrlKey) &&
    !event.shiftKey &&
    !event.altKey
  );
}
