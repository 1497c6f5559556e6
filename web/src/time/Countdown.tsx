import { useZone } from "@/settings/zone";
import { useNow } from "./clock";
import { fullInstant, remaining, span } from "./format";

const LATE_AFTER_MS = 10_000;

interface Props {
  at: string;
  zone?: string | null | undefined;
  className?: string;
}

/** What is left until something is due. Past it: "due", and from when the server counts it as overdue, how late. */
export function Countdown({ at, zone, className }: Props) {
  const shown = useZone(zone);
  const now = useNow();
  const date = new Date(at);
  const left = date.getTime() - now.getTime();
  const isLate = left < -LATE_AFTER_MS;
  const words = left > 0 ? remaining(left) : isLate ? `${span(left)} late` : "due";
  return (
    <time
      dateTime={at}
      title={fullInstant(date, shown)}
      className={`numbers whitespace-nowrap ${isLate ? "text-warn font-medium" : ""} ${className ?? ""}`}
    >
      {words}
    </time>
  );
}
