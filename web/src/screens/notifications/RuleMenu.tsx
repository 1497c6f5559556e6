import { type Rule, useChangeRule } from "@/api/notifications";
import { textOf } from "@/api/problem";
import { useWhyNot } from "@/api/session";
import { navigate } from "@/routing/location";
import { useNow } from "@/time/clock";
import { IconButton } from "@/ui/Button";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { toast } from "@/ui/Toasts";
import { ruleStateOf } from "./rule-words";

interface Props {
  rule: Rule;
  onEdit: () => void;
  onTest: () => void;
  onMute: () => void;
  onDelete: () => void;
}

export function RuleMenu({ rule, onEdit, onTest, onMute, onDelete }: Props) {
  const mayNotEdit = useWhyNot("editor");
  const change = useChangeRule();
  const isMuted = ruleStateOf({ ...rule, enabled: true }, useNow()) === "muted";

  function unmute() {
    change.mutate(
      { id: rule.rule_id, muted_until_ts: null },
      {
        onSuccess: () => toast({ tone: "good", text: `${rule.name} is heard again` }),
        onError: (error) =>
          toast({ tone: "bad", text: `${rule.name} is still muted`, detail: textOf(error) }),
      },
    );
  }

  return (
    <Menu button={<IconButton icon="more" label={`Actions for ${rule.name}`} />}>
      <MenuItem icon="edit" onSelect={onEdit}>
        {mayNotEdit === null ? "Edit…" : "Show…"}
      </MenuItem>
      <MenuItem icon="send" whyNot={mayNotEdit} onSelect={onTest}>
        Send a test
      </MenuItem>
      <MenuItem icon="mute" whyNot={mayNotEdit} onSelect={onMute}>
        {isMuted ? "Mute until another time…" : "Mute…"}
      </MenuItem>
      {isMuted && (
        <MenuItem icon="bell" whyNot={mayNotEdit} onSelect={unmute}>
          Unmute
        </MenuItem>
      )}
      <MenuItem
        icon="panel"
        onSelect={() => navigate(`/notifications/messages?rule_id=${encodeURIComponent(rule.rule_id)}`)}
      >
        Its messages
      </MenuItem>
      <MenuLine />
      <MenuItem icon="trash" isDangerous whyNot={mayNotEdit} onSelect={onDelete}>
        Delete…
      </MenuItem>
    </Menu>
  );
}
