import { isOneOf, kept, useKept } from "./kept";

export const ZONE_CHOICES = ["schedule", "mine", "utc"] as const;
/** Which time zone instants are shown in: the schedule's, the user's or UTC. */
export type ZoneChoice = (typeof ZONE_CHOICES)[number];

export const zoneChoice = kept<ZoneChoice>("zone", "mine", isOneOf(ZONE_CHOICES));

export function myZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The time zone to show an instant in. `own` is the zone of its schedule. */
export function zoneFor(choice: ZoneChoice, own: string | null | undefined): string {
  switch (choice) {
    case "utc":
      return "UTC";
    case "schedule":
      return own ?? myZone();
    case "mine":
      return myZone();
  }
}

export function useZone(own?: string | null): string {
  return zoneFor(useKept(zoneChoice), own);
}
