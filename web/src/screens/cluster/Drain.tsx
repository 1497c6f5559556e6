import { useState } from "react";
import { useDrain } from "@/api/cluster";
import { textOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import type { Instance } from "@/api/types";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { toast } from "@/ui/Toasts";

/** Button that drains an instance after a confirmation, or resumes it at once. Only for users of the
 * operator's host: instances belong to no other. */
export function Drain({ instance }: { instance: Instance }) {
  const whyNot = useWhyNot("operator");
  const change = useDrain();
  const [isAsking, setAsking] = useState(false);
  const { instance_id: id, hostname, is_draining: isDraining } = instance;

  function close() {
    setAsking(false);
    change.reset();
  }

  return (
    <div>
      <Button
        icon={isDraining ? "play" : "pause"}
        whyNot={whyNot}
        isBusy={change.isPending && !isAsking}
        onClick={() => {
          if (!isDraining) {
            setAsking(true);
            return;
          }
          change.mutate(
            { id, isDraining: false },
            {
              onSuccess: () => toast({ tone: "good", text: `${hostname} goes on` }),
              onError: (error) =>
                toast({ tone: "bad", text: `${hostname} is still draining`, detail: textOf(error) }),
            },
          );
        }}
      >
        {isDraining ? "Let it go on" : "Drain"}
      </Button>
      {isAsking && (
        <Confirm
          title={`Drain ${hostname} · ${instance.pid}?`}
          verb="Drain"
          isBusy={change.isPending}
          error={change.error}
          onClose={close}
          onConfirm={(reason) =>
            change.mutate(
              { id, isDraining: true, reason },
              {
                onSuccess: () => {
                  toast({ tone: "good", text: `${hostname} drains` });
                  close();
                },
              },
            )
          }
        >
          It finishes what it runs and claims no more; its shards are handed to another scheduler, if there is
          one. It drains until it is let go on, or stops.
        </Confirm>
      )}
    </div>
  );
}
