import { useState } from "react";
import { type Task, useSwitchTask } from "@/api/cluster";
import { textOf } from "@/api/problem";
import { Confirm } from "@/ui/Confirm";
import { useWhyNotOperator } from "@/ui/NeedsRole";
import { Switch } from "@/ui/Switch";
import { toast } from "@/ui/Toasts";

/** Switches a task function on at once, and off after a confirmation. Only for the operator: workers belong
 * to no host. */
export function TaskSwitch({ task }: { task: Task }) {
  const whyNot = useWhyNotOperator();
  const change = useSwitchTask();
  const [isAsking, setAsking] = useState(false);

  function close() {
    setAsking(false);
    change.reset();
  }

  return (
    <>
      <Switch
        label={`${task.name} is switched on`}
        isOn={task.is_active}
        whyNot={whyNot}
        isBusy={change.isPending && !isAsking}
        onChange={(isOn) => {
          if (!isOn) {
            setAsking(true);
            return;
          }
          change.mutate(
            { name: task.name, isActive: true },
            {
              onSuccess: () => toast({ tone: "good", text: `Switched ${task.name} on` }),
              onError: (error) =>
                toast({ tone: "bad", text: `${task.name} is still off`, detail: textOf(error) }),
            },
          );
        }}
      />
      {isAsking && (
        <Confirm
          title={`Switch ${task.name} off?`}
          verb="Switch off"
          isDangerous
          isBusy={change.isPending}
          error={change.error}
          onClose={close}
          onConfirm={(reason) =>
            change.mutate(
              { name: task.name, isActive: false, reason },
              {
                onSuccess: () => {
                  toast({ tone: "good", text: `Switched ${task.name} off` });
                  close();
                },
              },
            )
          }
        >
          For every host. Schedules that run it fail when they are due, and no new one may name it, until it
          is switched on again.
        </Confirm>
      )}
    </>
  );
}
