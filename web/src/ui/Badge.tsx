// Badges for states. Each shows its state as an icon, a word and a colour.

import type { ScheduleState, Status } from "@/api/types";
import { Icon, type IconName } from "./Icon";

export type Tone = "good" | "bad" | "busy" | "warn" | "odd" | "calm";

const TONES: Record<Tone, string> = {
  good: "bg-good-soft text-good",
  bad: "bg-bad-soft text-bad",
  busy: "bg-busy-soft text-busy",
  warn: "bg-warn-soft text-warn",
  odd: "bg-odd-soft text-odd",
  calm: "bg-calm-soft text-calm",
};

interface BadgeProps {
  tone: Tone;
  icon?: IconName;
  children: string;
  isSpinning?: boolean;
}

export function Badge({ tone, icon, children, isSpinning = false }: BadgeProps) {
  return (
    <span
      className={`inline-flex h-5 items-center gap-1 rounded-full pr-2 pl-1.5 text-xs font-medium whitespace-nowrap ${TONES[tone]}`}
    >
      {icon && <Icon name={icon} size={13} className={isSpinning ? "animate-spin" : ""} />}
      {children}
    </span>
  );
}

export const STATUS_LOOKS: Record<Status, { tone: Tone; icon: IconName }> = {
  pending: { tone: "calm", icon: "clock" },
  running: { tone: "busy", icon: "spin" },
  retrying: { tone: "warn", icon: "retry" },
  success: { tone: "good", icon: "checkCircle" },
  failed: { tone: "bad", icon: "crossCircle" },
  timeout: { tone: "bad", icon: "hourglass" },
  cancelled: { tone: "calm", icon: "stop" },
  skipped: { tone: "calm", icon: "skip" },
  unknown: { tone: "odd", icon: "question" },
};

/** Badge for the status of an execution. */
export function StatusBadge({ status }: { status: Status }) {
  const { tone, icon } = STATUS_LOOKS[status];
  return (
    <Badge tone={tone} icon={icon} isSpinning={status === "running"}>
      {status}
    </Badge>
  );
}

const STATE_LOOKS: Record<ScheduleState, { tone: Tone; icon: IconName }> = {
  active: { tone: "good", icon: "check" },
  paused: { tone: "warn", icon: "pause" },
  inactive: { tone: "calm", icon: "stop" },
  completed: { tone: "calm", icon: "flag" },
  error: { tone: "bad", icon: "warning" },
};

/** Badge for the state of a schedule. */
export function StateBadge({ state }: { state: ScheduleState }) {
  const { tone, icon } = STATE_LOOKS[state];
  return (
    <Badge tone={tone} icon={icon}>
      {state}
    </Badge>
  );
}

/** The colour of a status in drawings; defined in style/tokens.css. */
export function statusColour(status: Status): string {
  return `var(--status-${status})`;
}
