import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Message, MessageType, Rule } from "@/api/notifications";
import { schedule } from "@/api/schedules";
import { Link } from "@/routing/Link";
import { Badge } from "@/ui/Badge";
import { Icon } from "@/ui/Icon";
import { countIn, lookOf, scheduleNameIn, TYPE_LOOKS } from "./message-words";
import { DESTINATION_WORDS, hostOf, isId } from "./rule-words";

export function Panel({ children }: { children: ReactNode }) {
  return <div className="border-line bg-surface shadow-low relative rounded-lg border">{children}</div>;
}

export function DeliveryBadge({ message }: { message: Message }) {
  const { words, tone, icon } = lookOf(message);
  return (
    <Badge tone={tone} icon={icon}>
      {words}
    </Badge>
  );
}

export function TypeName({ type }: { type: MessageType }) {
  const { words, icon } = TYPE_LOOKS[type];
  return (
    <span className="flex min-w-0 items-center gap-1.5">
      <Icon name={icon} size={14} className="text-ink-faint" />
      <span className="truncate">{words}</span>
    </span>
  );
}

/** Kind and host of a destination. The rest of the URL may contain credentials and is not shown. */
export function Destination({ to }: { to: Rule["to"] }) {
  const host = hostOf(to.url);
  return (
    <span className="flex min-w-0 flex-wrap items-baseline gap-x-1.5 md:block">
      <span className="text-ink-soft text-xs md:block">{DESTINATION_WORDS[to.kind]}</span>
      <span className="max-w-full truncate md:block" title={host}>
        {host}
      </span>
    </span>
  );
}

const SHOWN_SCHEDULES = 2;

/** The schedules that a rule applies to. */
export function About({ match }: { match: Rule["match"] }) {
  const labels = Object.entries(match.labels ?? {});
  const more = match.schedules.length - SHOWN_SCHEDULES;
  if (match.schedules.length === 0 && labels.length === 0) {
    return <span>All schedules</span>;
  }
  return (
    <div className="flex min-w-0 flex-col gap-1">
      {match.schedules.slice(0, SHOWN_SCHEDULES).map((named) => (
        <NamedSchedule key={named} named={named} />
      ))}
      {more > 0 && <span className="text-ink-soft text-xs">and {more} more</span>}
      {labels.length > 0 && (
        <span className="flex min-w-0 flex-wrap gap-1">
          {labels.map(([name, value]) => (
            <span
              key={name}
              className="bg-sunken min-w-0 truncate rounded px-1.5 py-0.5 text-xs"
              title={`${name}: ${value}`}
            >
              {name}: {value}
            </span>
          ))}
        </span>
      )}
    </div>
  );
}

function NamedSchedule({ named }: { named: string }) {
  const name = useScheduleName(named);
  const text = "block max-w-full min-w-0 truncate rounded";
  return isId(named) ? (
    <Link href={`/schedules/${named}`} className={`${text} hover:underline`} title={name}>
      {name}
    </Link>
  ) : (
    <span className={text} title={name}>
      {name}
    </span>
  );
}

/** Name of a schedule given by id or name. Until the name is loaded, a short form of the id. */
export function useScheduleName(named: string): string {
  const found = useQuery({ ...schedule(named), enabled: isId(named), staleTime: 60_000, retry: false });
  if (!isId(named)) return named;
  return found.data?.name ?? (found.error ? "a schedule that is gone" : `schedule ${named.slice(0, 8)}…`);
}

/** What a message is about. */
export function Subject({ message }: { message: Message }) {
  const name = scheduleNameIn(message);
  const count = countIn(message);
  if (count !== null) {
    return <span>{count.toLocaleString("en")} schedules</span>;
  }
  if (name === null) {
    return <span className="text-ink-faint text-xs">none</span>;
  }
  return (
    <Link
      href={`/schedules/${message.schedule_id}`}
      className="block max-w-full truncate rounded hover:underline"
      title={name}
    >
      {name}
    </Link>
  );
}
