// Keeps the stream open only while the page is visible. Over HTTP/1.1 a browser has six connections per
// server for all its tabs together, and a stream takes one. A hidden tab closes its stream after HIDDEN_MS. A
// page that enters the back/forward cache closes it at once: it is then frozen and could not close it later.

/** Long enough for a glance at another tab; short enough to free connections when switching many tabs. */
export const HIDDEN_MS = 2000;

interface Stoppable {
  start(): void;
  /** Stop until the next start. Everything is refetched then, because events may have been missed. */
  stop(): void;
}

type Window = Pick<EventTarget, "addEventListener" | "removeEventListener">;
type Document = Window & { readonly visibilityState: DocumentVisibilityState };

/** Run the stream while the page is visible. Call the returned function to end this. */
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
    // `pageshow` also fires on the first load: then `persisted` is false.
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
