// Toasts: short messages about an action that succeeded or failed. Screen readers announce them, they stay
// while the user points at them, and they may offer one action.
//
//     toast({ tone: "good", text: "Paused nightly-report", action: { label: "Undo", run: resume } });

import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { IconButton } from "./Button";
import { Icon, type IconName } from "./Icon";

export interface Toast {
  tone: "good" | "bad" | "calm";
  text: string;
  detail?: string;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;
const SHOWN_BAD_MS = 12_000;
const MAX_TOASTS = 4;

type Kept = Toast & { id: number };
let toasts: readonly Kept[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function change(made: readonly Kept[]): void {
  toasts = made;
  for (const listener of listeners) listener();
}

export function toast(made: Toast): void {
  lastId += 1;
  change([...toasts, { ...made, id: lastId }].slice(-MAX_TOASTS));
}

function dismiss(id: number): void {
  change(toasts.filter((each) => each.id !== id));
}

const ICONS: Record<Toast["tone"], IconName> = { good: "checkCircle", bad: "warning", calm: "bell" };
const COLOURS: Record<Toast["tone"], string> = { good: "text-good", bad: "text-bad", calm: "text-ink-soft" };

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section
      aria-label="Notes"
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-4 left-4 z-50 flex flex-col items-end gap-2"
    >
      {shown.map((each) => (
        <ToastBox key={each.id} toast={each} />
      ))}
    </section>
  );
}

function ToastBox({ toast: shown }: { toast: Kept }) {
  const [isHeld, setHeld] = useState(false);
  const left = useRef(shown.tone === "bad" ? SHOWN_BAD_MS : SHOWN_MS);
  useEffect(() => {
    if (isHeld) return;
    const since = Date.now();
    const timer = setTimeout(() => dismiss(shown.id), left.current);
    return () => {
      clearTimeout(timer);
      left.current -= Date.now() - since;
    };
  }, [isHeld, shown.id]);

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: pointing at it only makes it wait
    <div
      role={shown.tone === "bad" ? "alert" : undefined}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      className="animate-rise border-line bg-raised shadow-high pointer-events-auto flex w-full max-w-sm items-start gap-2.5 rounded-lg border py-2 pr-1.5 pl-3"
    >
      <Icon name={ICONS[shown.tone]} className={`mt-1.5 ${COLOURS[shown.tone]}`} />
      <div className="min-w-0 grow py-1 text-sm">
        <p className="font-medium break-words">{shown.text}</p>
        {shown.detail && <p className="text-ink-soft break-words">{shown.detail}</p>}
        {shown.action && (
          <button
            type="button"
            className="text-accent mt-0.5 rounded font-medium hover:underline"
            onClick={() => {
              dismiss(shown.id);
              shown.action?.run();
            }}
          >
            {shown.action.label}
          </button>
        )}
      </div>
      <IconButton icon="close" label="Dismiss" side="left" onClick={() => dismiss(shown.id)} />
    </div>
  );
}
