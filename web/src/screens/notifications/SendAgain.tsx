import { type Message, useSendAgain } from "@/api/notifications";
import { textOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { Button } from "@/ui/Button";
import { toast } from "@/ui/Toasts";
import { TYPE_LOOKS } from "./message-words";

/** Resend a message whose delivery was given up. It gets as many attempts as a new message. */
export function SendAgain({ message, size = "small" }: { message: Message; size?: "small" | "usual" }) {
  const mayNot = useWhyNot("operator");
  const again = useSendAgain();
  const whyNot = message.rule_name === null ? "Its rule is deleted, and with it where to." : mayNot;
  return (
    <Button
      size={size}
      icon="send"
      whyNot={whyNot}
      isBusy={again.isPending}
      onClick={() =>
        again.mutate(message.notification_id, {
          onSuccess: () => toast({ tone: "good", text: "It is on its way again" }),
          onError: (error) =>
            toast({
              tone: "bad",
              text: `“${TYPE_LOOKS[message.type].words}” was not sent again`,
              detail: textOf(error),
            }),
        })
      }
    >
      Send again
    </Button>
  );
}
