import { useState } from "react";
import { useLiveness } from "@/api/live";
import { useMe, useSignOut } from "@/api/session";
import { navigate } from "@/routing/location";
import { useKept } from "@/settings/kept";
import { THEMES, type Theme, theme, useTheme } from "@/settings/theme";
import { myZone, type ZoneChoice, zoneChoice } from "@/settings/zone";
import { Button, IconButton } from "@/ui/Button";
import { Drawer } from "@/ui/Dialog";
import { Icon, type IconName } from "@/ui/Icon";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from "@/ui/Menu";
import { Tooltip } from "@/ui/Tooltip";
import { findKeys } from "./keys";
import { Brand, Places } from "./Navigation";
import { shortcutList } from "./shortcuts";

export function Header({ onFind }: { onFind: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <header className="border-line bg-canvas/90 sticky top-0 z-30 flex h-13 items-center gap-1.5 border-b px-3 backdrop-blur-sm sm:px-5">
      <div className="md:hidden">
        <IconButton icon="menu" label="Navigation" aria-expanded={isOpen} onClick={() => setOpen(true)} />
        <Drawer label="Navigation" isOpen={isOpen} onOpenChange={setOpen}>
          <nav aria-label="Main">
            <Brand isWide />
            <Places isWide onGo={() => setOpen(false)} />
          </nav>
        </Drawer>
      </div>
      <button
        type="button"
        onClick={onFind}
        className="border-line-strong bg-surface text-ink-faint hover:border-control flex h-8 min-w-0 grow items-center gap-2 rounded-md border px-2.5 text-sm shadow-low sm:max-w-80"
      >
        <Icon name="search" size={14} />
        <span className="truncate">Find a schedule</span>
        <kbd className="border-line bg-sunken text-ink-soft ml-auto hidden rounded border px-1.5 font-sans text-2xs sm:block">
          {findKeys()}
        </kbd>
      </button>
      <div className="ml-auto flex items-center gap-0.5">
        <LiveMark />
        <ZoneMenu />
        <ThemeMenu />
        <PersonMenu />
      </div>
    </header>
  );
}

const LIVENESS = {
  live: { words: "Live", tip: "What you see is kept up to date.", dot: "bg-(--status-success)" },
  connecting: {
    words: "Connecting",
    tip: "Changes are shown once there is a connection.",
    dot: "bg-(--status-retrying)",
  },
  broken: {
    words: "Not live",
    tip: "The connection is lost. It is tried again.",
    dot: "bg-(--status-failed)",
  },
} as const;

function LiveMark() {
  const liveness = useLiveness();
  const { words, tip, dot } = LIVENESS[liveness];
  return (
    <Tooltip text={tip} side="bottom">
      <span role="status" className="text-ink-soft mr-1.5 flex items-center gap-1.5 text-xs">
        <span
          className={`size-2 rounded-full ${dot} ${liveness === "connecting" ? "animate-waiting" : ""}`}
        />
        <span className={liveness === "live" ? "sr-only lg:not-sr-only" : ""}>{words}</span>
      </span>
    </Tooltip>
  );
}

const ZONE_WORDS: Record<ZoneChoice, string> = { schedule: "Schedule's zone", mine: "My zone", utc: "UTC" };

function ZoneMenu() {
  const choice = useKept(zoneChoice);
  return (
    <Menu
      button={
        <Button look="quiet" icon="globe" className="px-2" aria-label={`Time zone: ${ZONE_WORDS[choice]}`}>
          <span className="hidden lg:inline">{ZONE_WORDS[choice]}</span>
        </Button>
      }
    >
      <MenuChoice
        label="Show times in"
        value={choice}
        onChange={zoneChoice.set}
        choices={[
          { value: "schedule", label: ZONE_WORDS.schedule, hint: "Each in its own; else in mine" },
          { value: "mine", label: ZONE_WORDS.mine, hint: myZone() },
          { value: "utc", label: ZONE_WORDS.utc },
        ]}
      />
    </Menu>
  );
}

const THEME_ICONS: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };
const THEME_WORDS: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

function ThemeMenu() {
  const chosen = useTheme();
  return (
    <Menu
      button={
        <Button
          look="quiet"
          icon={THEME_ICONS[chosen]}
          className="px-2"
          aria-label={`Theme: ${THEME_WORDS[chosen]}`}
        />
      }
    >
      <MenuChoice
        label="Theme"
        value={chosen}
        onChange={theme.set}
        choices={THEMES.map((value) => ({ value, label: THEME_WORDS[value], icon: THEME_ICONS[value] }))}
      />
    </Menu>
  );
}

function PersonMenu() {
  const known = useMe();
  const signOut = useSignOut();
  if (known === null) {
    return null;
  }
  return (
    <Menu
      button={
        <Button look="quiet" icon="person" className="px-2" aria-label={`Signed in as ${known.name}`}>
          <span className="hidden max-w-32 truncate lg:inline">{known.name}</span>
        </Button>
      }
    >
      <MenuLabel>
        <span className="text-ink block max-w-60 truncate text-sm font-medium">{known.name}</span>
        Role {known.role}
        {known.is_operator && ", the operator's own key"}
      </MenuLabel>
      <MenuLine />
      <MenuItem icon="form" onSelect={() => shortcutList.show(true)}>
        Keyboard
      </MenuItem>
      <MenuItem icon="question" onSelect={() => navigate("/about")}>
        About Foliot
      </MenuItem>
      <MenuLine />
      <MenuItem icon="leave" onSelect={() => signOut.mutate()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
