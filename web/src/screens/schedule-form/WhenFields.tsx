import type { PreviewAsked } from "@/api/schedule-editing";
import { shownZoneOf, triggerKind, valuesIn } from "@/kinds";
import { myZone } from "@/settings/zone";
import { Group, ZoneField } from "./controls";
import { useForm } from "./form";
import { KindPicker } from "./KindPicker";
import { PreviewBox } from "./PreviewBox";

/** Form fields for the trigger, with a preview of the fire times. */
export function WhenFields({ asked }: { asked: PreviewAsked | null }) {
  const { draft, change, problem } = useForm();
  const { trigger } = draft;
  const zoneLabel = triggerKind(trigger.kind)?.zoneLabel(valuesIn("trigger", draft)) ?? null;
  return (
    <Group title="When">
      <KindPicker family="trigger" legend="Kind of trigger" />
      {zoneLabel !== null && (
        <ZoneField
          label={zoneLabel}
          value={trigger.zone}
          onChange={(zone) => change({ trigger: { ...trigger, zone } })}
          problem={problem("/trigger/timezone")}
          usual={[myZone(), "UTC"]}
        />
      )}
      <PreviewBox asked={asked} zone={asked && shownZoneOf(asked.trigger)} />
    </Group>
  );
}
