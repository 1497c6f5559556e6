import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useRestore, type Version, versionOf, versionsOf } from "@/api/schedule-history";
import { useWhyNot } from "@/api/session";
import type { Schedule } from "@/api/types";
import { Differences } from "@/screens/schedule-form/Differences";
import { Instant, RelativeTime } from "@/time/Instant";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { JsonView } from "@/ui/Code";
import { Confirm } from "@/ui/Confirm";
import { SelectField } from "@/ui/Field";
import { Icon, type IconName } from "@/ui/Icon";
import { ErrorState, Skeleton } from "@/ui/State";
import { toast } from "@/ui/Toasts";

interface Props {
  schedule: Schedule;
  /** Number of the open version. Null: none. */
  open: number | null;
  /** Version to compare with. Null: the previous one. */
  against: number | null;
  onOpen: (open: number | null, against: number | null) => void;
}

const LOOKS: Record<Version["change"], { tone: Tone; icon: IconName }> = {
  created: { tone: "good", icon: "plus" },
  edited: { tone: "busy", icon: "edit" },
  paused: { tone: "warn", icon: "pause" },
  resumed: { tone: "good", icon: "play" },
  deleted: { tone: "bad", icon: "trash" },
};

/** Version history: author, reason and changes of each version, with a button to restore it. */
export function Versions({ schedule, open, against, onOpen }: Props) {
  const list = useInfiniteQuery(versionsOf(schedule.schedule_id, schedule.aggregate_version));
  const versions = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.isPending) {
    return <Skeleton className="h-64" />;
  }
  if (list.error) {
    return <ErrorState error={list.error} onRetry={() => list.refetch()} />;
  }
  return (
    <div className="border-line bg-surface overflow-hidden rounded-lg border">
      <ol className="divide-line divide-y">
        {versions.map((version) => {
          const isOpen = version.aggregate_version === open;
          const look = LOOKS[version.change];
          return (
            <li key={version.aggregate_version}>
              <button
                type="button"
                aria-expanded={isOpen}
                onClick={() => onOpen(isOpen ? null : version.aggregate_version, null)}
                className="hover:bg-hover flex w-full flex-wrap items-center gap-x-2.5 gap-y-0.5 px-3 py-2 text-left text-sm focus-visible:-outline-offset-2"
              >
                <Icon name={isOpen ? "down" : "right"} size={12} className="text-ink-faint" />
                <span className="numbers w-8 font-medium">v{version.aggregate_version}</span>
                <Badge tone={look.tone} icon={look.icon}>
                  {version.change}
                </Badge>
                <span className="text-ink-soft min-w-0 truncate">{version.author ?? "nobody known"}</span>
                {version.aggregate_version === schedule.aggregate_version && (
                  <span className="text-ink-faint text-xs">present</span>
                )}
                <RelativeTime at={version.created_ts} className="text-ink-faint ml-auto text-xs" />
                {version.reason && (
                  <span className="text-ink-soft w-full truncate pl-5.5 text-xs">“{version.reason}”</span>
                )}
              </button>
              {isOpen && (
                <Details
                  schedule={schedule}
                  version={version}
                  others={versions.filter((each) => each !== version)}
                  against={against}
                  onAgainst={(other) => onOpen(version.aggregate_version, other)}
                />
              )}
            </li>
          );
        })}
      </ol>
      {list.hasNextPage && (
        <div className="border-line flex justify-center border-t p-2">
          <Button look="quiet" isBusy={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
            Show earlier ones
          </Button>
        </div>
      )}
    </div>
  );
}

interface DetailsProps {
  schedule: Schedule;
  version: Version;
  others: readonly Version[];
  against: number | null;
  onAgainst: (against: number | null) => void;
}

function Details({ schedule, version, others, against, onAgainst }: DetailsProps) {
  const id = schedule.schedule_id;
  const number = version.aggregate_version;
  const found = useQuery(versionOf(id, number, against));
  const [isAsking, setAsking] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const mayNotEdit = useWhyNot("editor");
  const restore = useRestore(id);
  const isPresent = number === schedule.aggregate_version;
  return (
    <div className="border-line bg-canvas flex flex-col gap-3 border-t px-4 py-3">
      <p className="text-ink-soft text-xs">
        <Instant at={version.created_ts} />
        {version.paused && ", paused"}
      </p>
      <div className="flex flex-wrap items-end gap-2">
        <div className="w-56">
          <SelectField
            label="Compared with"
            value={against === null ? "" : String(against)}
            choices={[
              { value: "", label: "the version before it" },
              ...others.map((each) => ({
                value: String(each.aggregate_version),
                label: `version ${each.aggregate_version}, ${each.change}`,
              })),
            ]}
            onChange={(chosen) => onAgainst(chosen === "" ? null : Number(chosen))}
          />
        </div>
        <Button look="quiet" className="h-9" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "What changed" : "All of it"}
        </Button>
        <Button
          icon="retry"
          className="ml-auto h-9"
          whyNot={mayNotEdit ?? (isPresent ? "It is so at present." : null)}
          onClick={() => setAsking(true)}
        >
          Restore
        </Button>
      </div>
      {found.isPending ? (
        <Skeleton className="h-16" />
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : isWhole ? (
        <JsonView value={found.data.document} what="the definition" />
      ) : found.data.against === null ? (
        <p className="text-ink-soft text-sm">
          The first version that is known: there is nothing to compare it with.
        </p>
      ) : found.data.changes.length === 0 ? (
        <p className="text-ink-soft text-sm">
          The definition is the same as in version {found.data.against}.
        </p>
      ) : (
        <Differences
          differences={found.data.changes}
          sides={[`Version ${found.data.against}`, `Version ${number}`]}
        />
      )}
      {isAsking && (
        <Confirm
          title={`Restore version ${number}?`}
          verb="Restore"
          isBusy={restore.isPending}
          error={restore.error}
          onClose={() => {
            setAsking(false);
            restore.reset();
          }}
          onConfirm={(reason) =>
            restore.mutate(
              { version: number, current: schedule.aggregate_version, reason },
              {
                onSuccess: (made) => {
                  setAsking(false);
                  toast({
                    tone: "good",
                    text: `${made.name} is as in version ${number}`,
                    detail: `Version ${made.aggregate_version}`,
                  });
                },
              },
            )
          }
        >
          <p className="mb-3">
            It gets the definition that it had then, as a new version. Whether it is paused stays as it is.
            Compared with what it is now:
          </p>
          <FromPresent id={id} number={number} present={schedule.aggregate_version} />
        </Confirm>
      )}
    </div>
  );
}

/** The changes that a restore would make. */
function FromPresent({ id, number, present }: { id: string; number: number; present: number }) {
  const found = useQuery(versionOf(id, number, present));
  if (found.data === undefined) {
    return <Skeleton className="h-16" />;
  }
  return <Differences differences={found.data.changes} sides={["Now", `Version ${number}`]} />;
}
