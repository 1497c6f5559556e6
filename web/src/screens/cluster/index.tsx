import { navigate, useLocation } from "@/routing/location";
import { NotHere } from "@/screens/not-here";
import { Screen } from "@/shell/Screen";
import { TabLinks } from "@/ui/TabLinks";
import { InstanceSheet } from "./InstanceSheet";
import { Instances } from "./Instances";
import { Leaders } from "./Leaders";
import { Queues } from "./Queues";
import { TaskSheet } from "./TaskSheet";
import { Tasks } from "./Tasks";
import { Tiles } from "./Tiles";
import { Workers } from "./Workers";

const TABS = [
  { tab: "instances", label: "Instances" },
  { tab: "workers", label: "Workers" },
  { tab: "queues", label: "Queues" },
  { tab: "tasks", label: "Task functions" },
  { tab: "leaders", label: "Leaders" },
] as const;

interface Props {
  /** Null: the first tab. */
  tab: string | null;
  /** The instance or task function whose panel is open; null: none. */
  openId: string | null;
}

/** The cluster screen: instances, workers, leaders, queues and tasks. */
export default function Cluster({ tab, openId }: Props) {
  const { search } = useLocation();
  const here = TABS.find((each) => each.tab === (tab ?? "instances"))?.tab;
  if (here === undefined || (openId !== null && (here === "queues" || here === "leaders"))) {
    return <NotHere />;
  }
  const close = () => navigate(`${addressOf(here)}${search}`);
  return (
    <Screen title="Cluster">
      <Tiles />
      <TabLinks
        label="Parts of the cluster"
        links={TABS.map((each) => ({
          href: addressOf(each.tab),
          label: each.label,
          isHere: each.tab === here,
        }))}
      />
      {here === "instances" && <Instances openId={openId} />}
      {here === "workers" && <Workers openId={openId} />}
      {here === "queues" && <Queues />}
      {here === "tasks" && <Tasks openId={openId} />}
      {here === "leaders" && <Leaders />}
      {openId !== null &&
        (here === "tasks" ? (
          <TaskSheet name={openId} onClose={close} />
        ) : (
          <InstanceSheet id={openId} onClose={close} />
        ))}
    </Screen>
  );
}

function addressOf(tab: string): string {
  return tab === "instances" ? "/cluster" : `/cluster/${tab}`;
}
