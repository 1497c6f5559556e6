import { useZone } from "@/settings/zone";
import { useNow } from "./clock";
import { fullInstant, instant, relative } from "./format";

interface Props {
  /** Timestamp in the API's format. */
  at: string;
  /** The time zone of its schedule. */
  zone?: string | null | undefined;
  className?: string;
}

/** An instant in the time zone that the user chose; in full on hover. */
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

/** An instant relative to now, such as "2 h ago"; in full on hover. */
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
