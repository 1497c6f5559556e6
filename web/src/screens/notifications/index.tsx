import { NotHere } from "@/screens/not-here";
import { Screen } from "@/shell/Screen";
import { TabLinks } from "@/ui/TabLinks";
import { Messages } from "./Messages";
import { Rules } from "./Rules";

const TABS = [
  { tab: "rules", label: "Rules", Content: Rules },
  { tab: "messages", label: "Messages", Content: Messages },
] as const;

/** Notifications screen: rules and sent messages. `tab` null: the rules. */
export default function Notifications({ tab }: { tab: string | null }) {
  const here = TABS.find((each) => each.tab === (tab ?? "rules"));
  if (here === undefined) {
    return <NotHere />;
  }
  return (
    <Screen title="Notifications">
      <TabLinks
        label="Parts of notifications"
        links={TABS.map((each) => ({
          href: `/notifications/${each.tab}`,
          label: each.label,
          isHere: each === here,
        }))}
      />
      <here.Content />
    </Screen>
  );
}
