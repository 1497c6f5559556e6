import { useQuery } from "@tanstack/react-query";
import { type Preview, type PreviewAsked, previewOf } from "@/api/schedule-editing";
import { myZone } from "@/settings/zone";
import { useNow } from "@/time/clock";
import { relative } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Icon } from "@/ui/Icon";
import { Skeleton } from "@/ui/State";
import { wallWords } from "./wall";

interface Props {
  asked: PreviewAsked | null;
  /** The schedule's time zone. Null: its trigger has none. */
  zone: string | null;
}

/** Preview of a schedule: description, next fire times in both zones, and warnings. */
export function PreviewBox({ asked, zone }: Props) {
  const preview = useQuery(previewOf(asked));
  const isOld = preview.isPlaceholderData || preview.error !== null;
  return (
    <section
      aria-label="Preview"
      className="border-line bg-sunken flex flex-col gap-3 rounded-lg border p-3"
      aria-busy={preview.isFetching || undefined}
    >
      {asked === null ? (
        <p className="text-ink-soft text-sm">The next times are shown here.</p>
      ) : preview.data ? (
        <div className={`flex flex-col gap-3 transition-opacity ${isOld ? "opacity-50" : ""}`}>
          <p role="status" className="flex items-start gap-2 font-medium">
            <Icon name="clock" className="text-accent mt-0.5" />
            <span className="min-w-0 break-words">{preview.data.description}</span>
          </p>
          <Warnings preview={preview.data} />
          <Fires preview={preview.data} zone={zone} />
        </div>
      ) : preview.error ? (
        <p className="text-ink-soft text-sm">The next times are shown once this can be read.</p>
      ) : (
        <Skeleton className="h-40" />
      )}
    </section>
  );
}

export function Warnings({ preview }: { preview: Preview }) {
  if (preview.details.length === 0) {
    return null;
  }
  return (
    <ul className="flex flex-col gap-1.5">
      {preview.details.map((warning) => (
        <li
          key={`${warning.code} ${warning.text}`}
          className="bg-warn-soft text-warn flex items-start gap-2 rounded-md px-2.5 py-1.5 text-xs"
        >
          <Icon name="warning" size={14} className="mt-0.5" />
          <span className="min-w-0 break-words">
            <span className="sr-only">Warning: </span>
            {warning.text.charAt(0).toUpperCase() + warning.text.slice(1)}.
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Marks a fire time that is affected by a clock change. */
export function ClockMark({ change }: { change: string | undefined }) {
  if (change === undefined) {
    return null;
  }
  return (
    <span
      title={change === "gap" ? "Clocks leave out a time that it stands for" : "Clocks show this time twice"}
    >
      <Badge tone="odd" icon="clock">
        {change === "gap" ? "clocks go forward" : "clocks go back"}
      </Badge>
    </span>
  );
}

function Fires({ preview, zone }: { preview: Preview; zone: string | null }) {
  const now = useNow();
  const mine = myZone();
  const hasTwo = zone !== null && zone !== mine;
  const marks = new Map(preview.marks.map((mark) => [mark.fire, mark.clock_change]));
  if (preview.fires.length === 0) {
    return <p className="text-ink-soft text-sm">It has no time to come.</p>;
  }
  return (
    <table className="numbers w-full text-xs">
      <caption className="text-ink-faint pb-1 text-left">
        {preview.fires.length === 1 ? "Next time" : `Next ${preview.fires.length} times`}
      </caption>
      <thead className={hasTwo ? "text-ink-faint text-left" : "sr-only"}>
        <tr>
          <th scope="col" className="pr-3 font-normal">
            {hasTwo ? zone : mine}
          </th>
          {hasTwo && (
            <th scope="col" className="hidden pr-3 font-normal sm:table-cell">
              {mine}, yours
            </th>
          )}
          <th scope="col" className="text-right font-normal">
            From now
          </th>
        </tr>
      </thead>
      <tbody>
        {preview.fires.map((fire) => (
          <tr key={fire} className="border-line border-t">
            <td className="py-1 pr-3">
              <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
                {wallWords(new Date(fire), hasTwo ? zone : mine)}
                <ClockMark change={marks.get(fire)} />
              </span>
              {hasTwo && (
                <span className="text-ink-soft block sm:hidden">{wallWords(new Date(fire), mine)} yours</span>
              )}
            </td>
            {hasTwo && (
              <td className="text-ink-soft hidden py-1 pr-3 sm:table-cell">
                {wallWords(new Date(fire), mine)}
              </td>
            )}
            <td className="text-ink-soft py-1 text-right whitespace-nowrap">
              {relative(new Date(fire), now)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
