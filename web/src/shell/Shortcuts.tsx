import { type ReactNode, useEffect, useRef, useSyncExternalStore } from "react";
import { Link } from "@/routing/Link";
import { navigate } from "@/routing/location";
import { useKept } from "@/settings/kept";
import { Dialog } from "@/ui/Dialog";
import { Switch } from "@/ui/Switch";
import { findKeys } from "./keys";
import { PLACES } from "./places";
import { letterOf, meaningOf, PREFIX_MS, shortcutList, singleKeys } from "./shortcuts";

/** Handles single-key shortcuts, and shows the list of them. Used once, by the shell. */
export function Shortcuts() {
  const isOn = useKept(singleKeys) === "on";
  const isShown = useSyncExternalStore(shortcutList.subscribe, shortcutList.get);
  const prefixAt = useRef(Number.NEGATIVE_INFINITY);

  useEffect(() => {
    if (!isOn) return;
    function listen(event: KeyboardEvent) {
      if (event.defaultPrevented || event.isComposing || isElsewhere(event.target)) return;
      const isAfterPrefix = event.timeStamp - prefixAt.current < PREFIX_MS;
      prefixAt.current = Number.NEGATIVE_INFINITY;
      const meaning = meaningOf(event, isAfterPrefix);
      switch (meaning?.kind) {
        case undefined:
          return;
        case "prefix":
          prefixAt.current = event.timeStamp;
          return;
        case "help":
          shortcutList.show(true);
          break;
        case "go":
          navigate(meaning.path);
          break;
        case "filter":
          document.querySelector<HTMLElement>("main input[type=search]")?.focus();
          break;
      }
      event.preventDefault();
    }
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [isOn]);

  return (
    <Dialog title="Keyboard" isOpen={isShown} onOpenChange={shortcutList.show}>
      <div className="mt-4 flex flex-col gap-5">
        <div className="bg-sunken flex items-start gap-3 rounded-md px-3 py-2 text-sm">
          <Switch
            label="Keys without Ctrl"
            isOn={isOn}
            onChange={(wanted) => singleKeys.set(wanted ? "on" : "off")}
          />
          <span>
            Keys without Ctrl
            <span className="text-ink-soft block text-xs">
              Off: /, ? and G do nothing. This list is in the menu of your name as well.
            </span>
          </span>
        </div>
        <Group title="Anywhere">
          <Row keys={[findKeys()]}>Find a schedule or a screen</Row>
          <Row keys={["/"]}>To the filter of this list</Row>
          <Row keys={["?"]}>These keys</Row>
          <Row keys={["Esc"]}>Close what is open</Row>
        </Group>
        <Group title="Go to">
          {PLACES.map((place) => (
            <Row key={place.path} keys={["G", letterOf(place).toUpperCase()]} joint="then">
              {place.name}
            </Row>
          ))}
        </Group>
        <Group title="In a list">
          <Row keys={["↑", "↓"]}>From row to row</Row>
          <Row keys={["Home", "End"]}>First and last row</Row>
          <Row keys={["Enter"]}>Open the row</Row>
          <Row keys={["Space"]}>Choose the row</Row>
          <Row keys={["Shift", "click"]} joint="+">
            Choose all between
          </Row>
        </Group>
        <Link
          href="/about"
          onClick={() => shortcutList.show(false)}
          className="text-accent self-start rounded text-sm hover:underline"
        >
          About Foliot
        </Link>
      </div>
    </Dialog>
  );
}

/** Whether a key press belongs to a form field, a menu or a dialog, and is no shortcut. */
function isElsewhere(target: EventTarget | null): boolean {
  const isField =
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, textarea, select, [role=menu]") !== null);
  return isField || document.querySelector("[role=dialog], [role=menu]") !== null;
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="text-ink-soft mb-1 text-xs font-medium">{title}</h3>
      <dl className="flex flex-col">{children}</dl>
    </section>
  );
}

interface RowProps {
  keys: readonly string[];
  /** Text between two keys. */
  joint?: string;
  children: ReactNode;
}

function Row({ keys, joint = "", children }: RowProps) {
  return (
    <div className="flex min-h-7 items-center gap-3 text-sm">
      <dt className="grow">{children}</dt>
      <dd className="flex items-center gap-1.5">
        {keys.map((key, index) => (
          <span key={key} className="flex items-center gap-1.5">
            {index > 0 && joint && <span className="text-ink-soft text-xs">{joint}</span>}
            <kbd className="border-line-strong bg-sunken text-ink min-w-6 rounded border border-b-2 px-1.5 text-center font-sans text-xs leading-5">
              {key}
            </kbd>
          </span>
        ))}
      </dd>
    </div>
  );
}
