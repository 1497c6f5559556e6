import { useQuery } from "@tanstack/react-query";
import { schedulesWith, useDeleteCalendar } from "@/api/calendars";
import { Link } from "@/routing/Link";
import { Confirm } from "@/ui/Confirm";
import { toast } from "@/ui/Toasts";

interface Props {
  name: string;
  onClose: () => void;
  onDeleted: () => void;
}

/** Confirmation dialog. Lists the schedules that still use the calendar and so prevent its deletion. */
export function DeleteCalendar({ name, onClose, onDeleted }: Props) {
  const remove = useDeleteCalendar();
  const users = useQuery(schedulesWith(name));
  const used = users.data?.items ?? [];
  return (
    <Confirm
      title={`Delete ${name}?`}
      verb="Delete"
      isDangerous
      asksReason={used.length === 0}
      whyNot={used.length > 0 ? "Schedules use it: take it out of them first." : null}
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={(reason) =>
        remove.mutate(
          { name, reason },
          {
            onSuccess: () => {
              toast({ tone: "good", text: `Deleted ${name}` });
              onClose();
              onDeleted();
            },
            onError: () => void users.refetch(),
          },
        )
      }
    >
      {used.length === 0 ? (
        "Its days are excluded no longer. The audit keeps that it was."
      ) : (
        <>
          <p>It can't be deleted while schedules use it:</p>
          <ul className="mt-1.5 flex flex-col gap-0.5">
            {used.map((schedule) => (
              <li key={schedule.schedule_id}>
                <Link
                  href={`/schedules/${schedule.schedule_id}`}
                  className="text-accent rounded font-medium hover:underline"
                >
                  {schedule.name}
                </Link>
              </li>
            ))}
          </ul>
          {users.data?.next_page_token !== "" && (
            <Link
              href={`/schedules?${new URLSearchParams({ calendar: name })}`}
              className="text-accent rounded hover:underline"
            >
              All of them
            </Link>
          )}
        </>
      )}
    </Confirm>
  );
}
