import { type Rule, useChangeRule } from "@/api/notifications";
import { textOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { useNow } from "@/time/clock";
import { Instant } from "@/time/Instant";
import { Icon } from "@/ui/Icon";
import { Switch } from "@/ui/Switch";
import { toast } from "@/ui/Toasts";
import { ruleStateOf } from "./rule-words";

/** Switch that enables or disables a rule at once. Also shows until when the rule is muted. */
export function RuleSwitch({ rule }: { rule: Rule }) {
  const mayNotEdit = useWhyNot("editor");
  const change = useChangeRule();
  const state = ruleStateOf(rule, useNow());
  return (
    <div className="flex flex-col items-start gap-0.5">
      <span className="flex items-center gap-2 text-xs">
        <Switch
          label={`${rule.name} is enabled`}
          isOn={rule.enabled}
          whyNot={mayNotEdit}
          isBusy={change.isPending}
          onChange={(enabled) =>
            change.mutate(
              { id: rule.rule_id, enabled },
              {
                onSuccess: () =>
                  toast({ tone: "good", text: `${enabled ? "Enabled" : "Disabled"} ${rule.name}` }),
                onError: (error) =>
                  toast({
                    tone: "bad",
                    text: `${rule.name} is still ${enabled ? "disabled" : "enabled"}`,
                    detail: textOf(error),
                  }),
              },
            )
          }
        />
        <span className="text-ink-soft">{rule.enabled ? "on" : "off"}</span>
      </span>
      {state === "muted" && rule.muted_until_ts && (
        <span className="text-warn flex items-center gap-1 text-xs font-medium">
          <Icon name="mute" size={13} />
          <span>
            muted to <Instant at={rule.muted_until_ts} />
          </span>
        </span>
      )}
    </div>
  );
}
