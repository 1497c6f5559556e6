import { useZone } from "@/settings/zone";
import { useNow } from "./clock";
import { fullInstant, instant, relative } from "./format";

interface Props {
  /** As the API tells it. */
  at: string;
  /** The zone of the schedule that it belongs to. */
  zone?: string | null | undefined;
  className?: string;
}

/** An instant in the zone that the reader chose; in full on hover. */
export function Instant({ at, zone, className }: Props) {
  const shown = useZone(zone);
  const now = useNow();
  const date = new Date(at);
  return (
    <time
      dateTime={at}
      title={fullInstant(date, shown)}
      className={`numbers whitespace-nowrap ${className ?? ""}`}
    >
      {instant(date, shown, now)}
    </time>
  );
}

/** How long ago, or in how long; the instant itself on hover. */
export function RelativeTime({ at, zone, className }: Props) {
  const shown = useZone(zone);
  const now = useNow();
  const date = new Date(at);
  return (
    <time
      dateTime={at}
      title={fullInstant(date, shown)}
      className={`numbers whitespace-nowrap ${className ?? ""}`}
    >
      {relative(date, now)}
    </time>
  );
}
