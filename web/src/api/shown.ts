// A stream takes one of the six connections that a browser has per server over HTTP/1.1, for all its tabs
// together. So only a page that is shown has one: a hidden tab gives its connection back after a moment, and a
// page that goes into the back/forward cache at once. Such a page is frozen and could not close it later.

/** Long enough for a glance at another tab, short enough that going through many tabs finds a connection. */
export const HIDDEN_MS = 2000;

interface Stoppable {
  start(): void;
  /** Until it is started again: then all is read again, since something may have been missed. */
  stop(): void;
}

type Window = Pick<EventTarget, "addEventListener" | "removeEventListener">;
type Document = Window & { readonly visibilityState: DocumentVisibilityState };

/** Runs the stream while the page is shown, until the function that it returns is called. */
export function keepWhileShown(
  stream: Stoppable,
  page: Window = window,
  seen: Document = document,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;

  function stop() {
    clearTimeout(timer);
    stream.stop();
  }
  function follow() {
    clearTimeout(timer);
    if (seen.visibilityState === "hidden") {
      timer = setTimeout(stop, HIDDEN_MS);
    } else {
      stream.start();
    }
  }
  function comeBack(event: Event) {
    // Also a page that is loaded for the first time is told that it is shown.
    if ((event as PageTransitionEvent).persisted) follow();
  }

  if (seen.visibilityState === "hidden") {
    stream.stop();
  } else {
    stream.start();
  }
  seen.addEventListener("visibilitychange", follow);
  page.addEventListener("pagehide", stop);
  page.addEventListener("pageshow", comeBack);
  return () => {
    seen.removeEventListener("visibilitychange", follow);
    page.removeEventListener("pagehide", stop);
    page.removeEventListener("pageshow", comeBack);
    stop();
  };
}
