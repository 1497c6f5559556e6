import { useZone } from "@/settings/zone";
import { useNow } from "./clock";
import { fullInstant, remaining } from "./format";

interface Props {
  at: string;
  zone?: string | null | undefined;
  className?: string;
}

/** The time left until an instant, then "due". It never says "late": only the server knows, and the data
 * shown may be older than the run. */
export function Countdown({ at, zone, className }: Props) {
  const shown = useZone(zone);
  const now = useNow();
  const date = new Date(at);
  const left = date.getTime() - now.getTime();
  const words = left > 0 ? remaining(left) : "due";
  return (
    <time
      dateTime={at}
      title={fullInstant(date, shown)}
      className={`numbers whitespace-nowrap ${className ?? ""}`}
    >
      {words}
    </time>
  );
}
