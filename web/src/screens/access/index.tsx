import { covers, useMe } from "@/api/session";
import { NotHere } from "@/screens/not-here";
import { Screen } from "@/shell/Screen";
import { TabLinks } from "@/ui/TabLinks";
import { Audit } from "./Audit";
import { Calendars } from "./Calendars";
import { Hosts } from "./Hosts";
import { Keys } from "./Keys";
import { Me } from "./Me";
import { Secrets } from "./Secrets";

const TABS = [
  { tab: "keys", label: "Keys", Content: Keys },
  { tab: "secrets", label: "Secrets", Content: Secrets },
  { tab: "calendars", label: "Calendars", Content: Calendars },
  { tab: "audit", label: "Audit", Content: Audit },
  { tab: "hosts", label: "Hosts", Content: Hosts },
  { tab: "me", label: "You", Content: Me },
] as const;

/** Access screen: keys, secrets, calendars, audit log. `tab` null: keys for admins, "You" for others. */
export default function Access({ tab }: { tab: string | null }) {
  const known = useMe();
  const first = known !== null && covers(known.role, "admin") ? "keys" : "me";
  const here = TABS.find((each) => each.tab === (tab ?? first));
  if (here === undefined) {
    return <NotHere />;
  }
  return (
    <Screen title="Access">
      <TabLinks
        label="Parts of access"
        links={TABS.map((each) => ({
          href: `/access/${each.tab}`,
          label: each.label,
          isHere: each === here,
        }))}
      />
      <here.Content />
    </Screen>
  );
}
