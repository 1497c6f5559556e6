import { useQuery } from "@tanstack/react-query";
import { type Message, message as messageQuery, type Rule, type useTestRule } from "@/api/notifications";
import { textOf } from "@/api/problem";
import { navigate } from "@/routing/location";
import { Countdown } from "@/time/Countdown";
import { useNow } from "@/time/clock";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { FormProblem } from "@/ui/Field";
import { Icon, type IconName } from "@/ui/Icon";
import { triesWords } from "./message-words";
import { DESTINATION_WORDS, hostOf } from "./rule-words";

interface Props {
  rule: Rule;
  /** The request that sends the test message. It started when the dialog was opened. */
  sent: ReturnType<typeof useTestRule>;
  onClose: () => void;
}

/** Dialog that follows a test message until it is delivered or given up. */
export function TestDialog({ rule, sent, onClose }: Props) {
  const id = sent.data?.notification_id ?? "";
  const followed = useQuery({ ...messageQuery(id), enabled: id !== "" });
  const message = followed.data ?? sent.data;
  return (
    <Dialog
      title={`A test of ${rule.name}`}
      description={`To ${DESTINATION_WORDS[rule.to.kind]} at ${hostOf(rule.to.url)}, also while the rule is disabled or muted.`}
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <div className="mt-4 flex flex-col gap-4">
        <div role="status" className="text-sm">
          {message ? <Progress message={message} /> : sent.isPending && <Line icon="clock">Asked for.</Line>}
        </div>
        {/* Outside of the live region: a screen reader would announce it every second. */}
        {message?.status === "pending" && message.error !== null && message.due_ts !== null && (
          <p className="text-ink-soft -mt-3 ml-6 text-sm">
            Next try: <Countdown at={message.due_ts} />
          </p>
        )}
        <FormProblem text={sent.error ? textOf(sent.error) : null} />
        <div className="flex justify-end gap-2">
          {id !== "" && (
            <Button onClick={() => navigate(`/notifications/messages?message=${id}`)}>
              Show the message
            </Button>
          )}
          <Button look="primary" onClick={onClose}>
            Close
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

const LONG_MS = 10_000;

function Progress({ message }: { message: Message }) {
  const now = useNow();
  const tries = triesWords(message.attempts);
  switch (message.status) {
    case "delivered":
      return (
        <Line icon="checkCircle" colour="text-good">
          Delivered, after {tries}.
        </Line>
      );
    case "dead":
      return (
        <Line icon="crossCircle" colour="text-bad">
          Given up after {tries}: {message.error}
        </Line>
      );
    case "pending":
      if (message.error !== null) {
        return (
          <Line icon="retry" colour="text-warn">
            {tries} went wrong: {message.error}
          </Line>
        );
      }
      if (message.attempts > 0) {
        return <Line icon="send">Being sent.</Line>;
      }
      return (
        <Line icon="clock">
          {now.getTime() - Date.parse(message.created_ts) > LONG_MS
            ? "No worker has taken it yet: instances with the role worker send messages."
            : "Waiting for a worker to take it."}
        </Line>
      );
  }
}

interface LineProps {
  icon: IconName;
  colour?: string;
  children: React.ReactNode;
}

function Line({ icon, colour = "text-ink-faint", children }: LineProps) {
  return (
    <p className="flex items-start gap-2">
      <Icon name={icon} className={`mt-0.5 ${colour}`} />
      <span className="min-w-0 [overflow-wrap:anywhere]">{children}</span>
    </p>
  );
}
