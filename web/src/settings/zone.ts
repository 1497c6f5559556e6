import { isOneOf, kept, useKept } from "./kept";

export const ZONE_CHOICES = ["schedule", "mine", "utc"] as const;
/** In whose time zone instants are shown. */
export type ZoneChoice = (typeof ZONE_CHOICES)[number];

export const zoneChoice = kept<ZoneChoice>("zone", "mine", isOneOf(ZONE_CHOICES));

export function myZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The zone to show an instant in; `own` is that of the schedule it belongs to. */
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
