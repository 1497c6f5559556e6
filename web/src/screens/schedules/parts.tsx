// Parts of a schedule shared by its row, card and panel.

import { isFunction, type Schedule, type Target } from "@/api/types";
import { expressionOf, labelOf, OTHER_ICON, shownZoneOf, targetKind, targetOf, useKinds } from "@/kinds";
import { navigate, useLocation } from "@/routing/location";
import { panelAddress, useActAddress } from "@/screens/schedule/address";
import { Countdown } from "@/time/Countdown";
import { Instant } from "@/time/Instant";
import { StateBadge } from "@/ui/Badge";
import { IconButton } from "@/ui/Button";
import { copyText } from "@/ui/Copy";
import { Icon } from "@/ui/Icon";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { Switch } from "@/ui/Switch";
import { toast } from "@/ui/Toasts";
import { useScheduleActions } from "./actions";
import { whenOf, whyFixed, zoneOf } from "./words";

/** The trigger: description, expression and time zone. */
export function When({ schedule }: { schedule: Pick<Schedule, "trigger" | "trigger_description"> }) {
  const zone = shownZoneOf(schedule.trigger);
  const expression = expressionOf(schedule.trigger);
  return (
    <div className="min-w-0">
      <div className="truncate" title={whenOf(schedule)}>
        {whenOf(schedule)}
      </div>
      <div className="text-ink-soft flex gap-1.5 text-xs">
        <code className="max-w-3/4 shrink-0 truncate font-mono" title={expression}>
          {expression}
        </code>
        {zone !== null && <span className="text-ink-faint truncate">{zone}</span>}
      </div>
    </div>
  );
}

export function TargetLine({ target }: { target: Target }) {
  const own = targetKind(target.kind);
  return (
    <span className="text-ink-soft flex min-w-0 items-center gap-1 text-xs">
      <Icon name={own?.icon ?? OTHER_ICON} size={13} className="text-ink-faint" />
      {own ? <span className="sr-only">{own.label}</span> : <OtherKind name={target.kind} />}
      <span className="truncate" title={targetOf(target)}>
        {targetOf(target)}
      </span>
    </span>
  );
}

/** Display name of a kind of target that a plug-in added. */
function OtherKind({ name }: { name: string }) {
  return <span className="shrink-0">{labelOf("target", name, useKinds())}</span>;
}

/** Switch that pauses and resumes a schedule. It does not change the definition. */
export function EnabledSwitch({ schedule }: { schedule: Schedule }) {
  const { pause, resume, switchingId, mayNotSteer } = useScheduleActions();
  return (
    <Switch
      label={`${schedule.name} is enabled`}
      isOn={schedule.active && !schedule.paused}
      isBusy={switchingId === schedule.schedule_id}
      whyNot={mayNotSteer ?? whyFixed(schedule)}
      onChange={(isOn) => (isOn ? resume(schedule) : pause(schedule))}
    />
  );
}

/** State of a schedule: the next run, or why there is none. */
export function Standing({ schedule }: { schedule: Schedule }) {
  const zone = zoneOf(schedule.trigger);
  const { state, next_run_ts: next, paused_until_ts: until } = schedule;
  const reason = state === "paused" ? schedule.pause_reason : schedule.state_reason;
  return (
    <div className="flex min-w-0 flex-col gap-0.5">
      <span className="flex items-center gap-2">
        <StateBadge state={state} />
        {state === "active" && next && <Countdown at={next} zone={zone} className="font-medium" />}
      </span>
      {state === "active" && next && <Instant at={next} zone={zone} className="text-ink-faint text-xs" />}
      {state === "paused" && until && (
        <span className="text-ink-soft text-xs">
          until <Instant at={until} zone={zone} />
        </span>
      )}
      {reason && (
        <span className="text-ink-soft block truncate text-xs" title={reason}>
          {reason}
        </span>
      )}
    </div>
  );
}

const OWNER_WORDS: Record<Schedule["managed_by"], string> = {
  api: "API",
  ui: "UI",
  code: "code",
  file: "file",
};

/** Where the schedule is defined, and so where to change it. */
export function Owner({ schedule }: { schedule: Schedule }) {
  return (
    <span
      className="text-ink-faint shrink-0 text-xs"
      title={`Managed by ${OWNER_WORDS[schedule.managed_by]}${schedule.managed_source ? `, ${schedule.managed_source}` : ""}`}
    >
      · {OWNER_WORDS[schedule.managed_by]}
    </span>
  );
}

export function ScheduleMenu({ schedule }: { schedule: Schedule }) {
  const { trigger, resume, askPause, askDelete, mayNotSteer, mayNotEdit } = useScheduleActions();
  const addressOf = useActAddress();
  const { path, search } = useLocation();
  const id = schedule.schedule_id;
  async function copy(text: string, what: string) {
    const isCopied = await copyText(text);
    toast(
      isCopied
        ? { tone: "good", text: `Copied ${what}` }
        : { tone: "bad", text: "This browser lets nothing be copied here" },
    );
  }
  return (
    <Menu button={<IconButton icon="more" label={`Actions for ${schedule.name}`} />}>
      <MenuItem icon="play" whyNot={mayNotSteer} onSelect={() => trigger(schedule)}>
        Run now
      </MenuItem>
      {isFunction(schedule.target) && (
        <MenuItem icon="form" whyNot={mayNotSteer} onSelect={() => navigate(addressOf(id, "run"))}>
          Run with other arguments…
        </MenuItem>
      )}
      {schedule.paused ? (
        <MenuItem icon="play" whyNot={mayNotSteer} onSelect={() => resume(schedule)}>
          Resume
        </MenuItem>
      ) : (
        <MenuItem icon="pause" whyNot={mayNotSteer} onSelect={() => askPause(schedule)}>
          Pause…
        </MenuItem>
      )}
      <MenuItem icon="timeline" whyNot={mayNotSteer} onSelect={() => navigate(addressOf(id, "backfill"))}>
        Backfill…
      </MenuItem>
      <MenuLine />
      <MenuItem icon="edit" whyNot={mayNotEdit} onSelect={() => navigate(addressOf(id, "edit"))}>
        Edit
      </MenuItem>
      <MenuItem
        icon="copy"
        whyNot={mayNotEdit}
        onSelect={() =>
          navigate(panelAddress(path === "/schedules" ? search : "", { like: id }, "/schedules/new"))
        }
      >
        Duplicate…
      </MenuItem>
      <MenuLine />
      <MenuItem icon="copy" onSelect={() => copy(schedule.name, "the name")}>
        Copy name
      </MenuItem>
      <MenuItem icon="copy" onSelect={() => copy(schedule.schedule_id, "the id")}>
        Copy id
      </MenuItem>
      <MenuLine />
      <MenuItem icon="trash" isDangerous whyNot={mayNotEdit} onSelect={() => askDelete(schedule)}>
        Delete…
      </MenuItem>
    </Menu>
  );
}
