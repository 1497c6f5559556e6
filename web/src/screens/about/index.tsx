import { useQuery } from "@tanstack/react-query";
import { useMe } from "@/api/session";
import { clusterStatus, instances } from "@/api/status";
import { serverUrl } from "@/routing/base";
import { Link } from "@/routing/Link";
import { standingOf } from "@/screens/cluster/facts";
import { useZone } from "@/settings/zone";
import { Screen } from "@/shell/Screen";
import { shortcutList } from "@/shell/shortcuts";
import { useNow } from "@/time/clock";
import { fullInstant } from "@/time/format";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { FactList } from "@/ui/FactList";
import { Icon } from "@/ui/Icon";
import { Mark } from "@/ui/Mark";
import { Skeleton } from "@/ui/State";

/** Other pages of the server. */
const LINKS = [
  { href: "/openapi.json", name: "The API, described", note: "OpenAPI, for programs and clients" },
  { href: "/metrics", name: "Metrics", note: "For Prometheus; may need a key" },
  { href: "/readyz", name: "Readiness", note: "Whether this instance can do its work" },
  { href: "/healthz", name: "Health", note: "Whether this instance is alive" },
] as const;

/** The screen with the version of Foliot and facts about this server. */
export default function About() {
  const known = useMe();
  return (
    <Screen
      title="About"
      actions={
        <Button icon="form" onClick={() => shortcutList.show(true)}>
          Keyboard
        </Button>
      }
    >
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <section className="border-line bg-surface shadow-low flex flex-col gap-5 rounded-lg border p-5">
          <div className="flex items-center gap-4">
            <Mark size={48} />
            <div>
              <p className="text-2xl font-semibold tracking-tight">Foliot</p>
              <p className="text-ink-soft text-sm">A distributed scheduler for Python teams.</p>
            </div>
          </div>
          <FactList
            facts={[
              ["Version", <Versions key="version" />],
              [
                "Server",
                <span key="server" className="font-mono text-xs">
                  {serverUrl()}
                </span>,
              ],
              ["Its time", <ServerTime key="time" />],
              ["Signed in as", known ? `${known.name}, ${known.role}` : "nobody"],
            ]}
          />
          <p className="text-ink-soft text-xs">
            A foliot is the swinging bar that told the first mechanical clocks when to move on.
          </p>
        </section>
        <section
          aria-label="What the server offers"
          className="border-line bg-surface shadow-low rounded-lg border p-2"
        >
          <ul>
            {LINKS.map((link) => (
              <li key={link.href}>
                <a
                  href={link.href}
                  target="_blank"
                  rel="noreferrer"
                  className="hover:bg-hover flex items-center gap-3 rounded-md px-3 py-2.5"
                >
                  <span className="min-w-0 grow">
                    <span className="block text-sm font-medium">
                      {link.name}
                      <span className="sr-only">, in a new tab</span>
                    </span>
                    <span className="text-ink-soft block text-xs">{link.note}</span>
                  </span>
                  <code className="text-ink-soft font-mono text-xs">{link.href}</code>
                  <Icon name="right" size={14} className="text-ink-faint" />
                </a>
              </li>
            ))}
            <li>
              <Link
                href="/access/me"
                className="hover:bg-hover flex items-center gap-3 rounded-md px-3 py-2.5"
              >
                <span className="min-w-0 grow">
                  <span className="block text-sm font-medium">What you may do</span>
                  <span className="text-ink-soft block text-xs">Your role, and the command line</span>
                </span>
                <code className="text-ink-soft font-mono text-xs">/access/me</code>
                <Icon name="right" size={14} className="text-ink-faint" />
              </Link>
            </li>
          </ul>
        </section>
      </div>
    </Screen>
  );
}

function Versions() {
  const found = useQuery(instances);
  if (found.data === undefined) {
    return found.error ? "not known" : <Skeleton className="h-5 w-24" />;
  }
  const { versions } = standingOf(found.data.items);
  return (
    <span className="flex flex-wrap items-center gap-2">
      {versions.map(([version, count]) => (
        <span key={version}>
          <span className="font-medium">{version}</span>
          <span className="text-ink-soft">
            {" "}
            on {count} {count === 1 ? "instance" : "instances"}
          </span>
        </span>
      ))}
      {versions.length > 1 && (
        <Badge tone="warn" icon="warning">
          several versions
        </Badge>
      )}
    </span>
  );
}

function ServerTime() {
  // Fetching the status corrects this page's clock.
  useQuery(clusterStatus);
  return <span className="numbers">{fullInstant(useNow(), useZone())}</span>;
}
