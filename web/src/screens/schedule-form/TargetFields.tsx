import { Group } from "./controls";
import { KindPicker } from "./KindPicker";

/** Form fields for the target: what the schedule runs. */
export function TargetFields() {
  return (
    <Group title="What">
      <KindPicker family="target" legend="Kind of target" />
    </Group>
  );
}
