import { type Rule, useDeleteRule } from "@/api/notifications";
import { Confirm } from "@/ui/Confirm";
import { toast } from "@/ui/Toasts";

export function DeleteRule({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const remove = useDeleteRule();
  return (
    <Confirm
      title={`Delete ${rule.name}?`}
      verb="Delete"
      isDangerous
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={(reason) =>
        remove.mutate(
          { id: rule.rule_id, reason },
          {
            onSuccess: () => {
              toast({ tone: "good", text: `Deleted ${rule.name}` });
              onClose();
            },
          },
        )
      }
    >
      Nobody is told by it any more. Messages that are still on their way are not sent; those that were sent
      stay listed.
    </Confirm>
  );
}
