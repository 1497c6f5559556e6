// States of API keys. Pure functions.

import type { Key } from "@/api/keys";
import type { Tone } from "@/ui/Badge";
import type { IconName } from "@/ui/Icon";

export const KEY_STATES = ["active", "expiring", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

const DAY_MS = 86_400_000;
/** A key is "expiring" when less time than this is left: enough to create a replacement. */
const SOON_MS = 7 * DAY_MS;

export const KEY_LOOKS: Record<KeyState, { tone: Tone; icon: IconName }> = {
  active: { tone: "good", icon: "check" },
  expiring: { tone: "warn", icon: "hourglass" },
  expired: { tone: "calm", icon: "clock" },
  revoked: { tone: "bad", icon: "stop" },
};

export function keyStateOf(key: Pick<Key, "expires_ts" | "revoked_ts">, now: Date): KeyState {
  if (key.revoked_ts !== null) return "revoked";
  if (key.expires_ts === null) return "active";
  const left = Date.parse(key.expires_ts) - now.getTime();
  if (left <= 0) return "expired";
  return left <= SOON_MS ? "expiring" : "active";
}

export function isUsable(state: KeyState): boolean {
  return state === "active" || state === "expiring";
}

/** Usable keys first, then the others. Newest first in each group. */
export function inOrder(keys: readonly Key[], now: Date): Key[] {
  const rank = (key: Key) => (isUsable(keyStateOf(key, now)) ? 0 : 1);
  return [...keys].sort((a, b) => rank(a) - rank(b) || Date.parse(b.created_ts) - Date.parse(a.created_ts));
}

export const LIFETIMES = ["30", "90", "365", "day", "never"] as const;
export type Lifetime = (typeof LIFETIMES)[number];

/** Expiry of a key created now. Null: never. `day` is a date input's value: the key expires at its end. */
export function endOf(lifetime: Lifetime, day: string, now: Date): string | null {
  switch (lifetime) {
    case "never":
      return null;
    case "day":
      return day === "" ? null : new Date(`${day}T23:59:59`).toISOString();
    default:
      return new Date(now.getTime() + Number(lifetime) * DAY_MS).toISOString();
  }
}
