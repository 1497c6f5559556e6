import { useQuery } from "@tanstack/react-query";
import { type Message, message as messageQuery } from "@/api/notifications";
import { ProblemError } from "@/api/problem";
import { Link } from "@/routing/Link";
import { Countdown } from "@/time/Countdown";
import { Instant, RelativeTime } from "@/time/Instant";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Sheet } from "@/ui/Dialog";
import { FactList } from "@/ui/FactList";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { RuleName } from "./Messages";
import { executionIn, TYPE_LOOKS } from "./message-words";
import { DeliveryBadge, Subject } from "./parts";
import { SendAgain } from "./SendAgain";

/** Panel with one message: its content and delivery state. */
export function MessageSheet({ id, onClose }: { id: string; onClose: () => void }) {
  const found = useQuery(messageQuery(id));
  const known = found.data;
  const isUnknown = found.error instanceof ProblemError && [404, 422].includes(found.error.status);
  return (
    <Sheet
      title={known ? TYPE_LOOKS[known.type].words : "Message"}
      actions={known?.status === "dead" && <SendAgain message={known} size="usual" />}
      onClose={onClose}
    >
      {known ? (
        <Body message={known} />
      ) : isUnknown ? (
        <EmptyState icon="question" title="There is no such message">
          It is older than FOLIOT_RETENTION_DAYS, or its rule was deleted before it was sent.
        </EmptyState>
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}

function Body({ message }: { message: Message }) {
  const execution = executionIn(message);
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          ["Status", <DeliveryBadge key="status" message={message} />],
          ["Schedule", <Subject key="schedule" message={message} />],
          ...(execution === null
            ? []
            : ([
                [
                  "Execution",
                  <Link
                    key="execution"
                    href={`/executions/${execution}`}
                    className="text-accent rounded hover:underline"
                  >
                    Show it
                  </Link>,
                ],
              ] as const)),
          ["Rule", <RuleName key="rule" message={message} />],
          ["Tries", <span key="tries">{message.attempts}</span>],
          ["Last error", message.error ?? <span className="text-ink-faint">none</span>],
          [
            "Made",
            <span key="made">
              <Instant at={message.created_ts} /> (<RelativeTime at={message.created_ts} />)
            </span>,
          ],
          message.ended_ts === null
            ? ["Next try", message.due_ts ? <Countdown key="next" at={message.due_ts} /> : "none"]
            : [
                message.status === "dead" ? "Given up" : "Arrived",
                <span key="ended">
                  <Instant at={message.ended_ts} />
                </span>,
              ],
          [
            "Id",
            <span key="id" className="inline-flex items-center gap-1 font-mono text-xs break-all">
              {message.notification_id}
              <CopyButton text={message.notification_id} what="the id" className="-my-2" />
            </span>,
          ],
        ]}
      />
      <section className="flex flex-col gap-2">
        <h3 className="font-semibold">What a webhook is sent</h3>
        <JsonView value={message.message} what="the message" />
      </section>
    </div>
  );
}
