import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { findKeys } from "@/shell/keys";
import { PLACES } from "@/shell/places";
import { Screen } from "@/shell/Screen";
import { Icon } from "@/ui/Icon";

/** Shown for an unknown URL, with links to existing screens. */
export function NotHere() {
  const { path } = useLocation();
  return (
    <Screen title="Nothing here">
      <div className="border-line bg-surface shadow-low flex flex-col items-center gap-6 rounded-lg border px-6 py-14 text-center">
        <div className="flex flex-col items-center gap-2">
          <span className="bg-sunken text-ink-faint grid size-12 place-items-center rounded-full">
            <Icon name="question" size={24} />
          </span>
          <p className="text-lg font-semibold">There is nothing at this address</p>
          <code className="text-ink-soft max-w-full font-mono text-sm break-all">{path}</code>
          <p className="text-ink-soft max-w-md text-sm">
            It was mistyped, or what was here is gone. Schedules are found by {findKeys()}.
          </p>
        </div>
        <nav aria-label="Where to go">
          <ul className="flex flex-wrap justify-center gap-2">
            {PLACES.map((place) => (
              <li key={place.path}>
                <Link
                  href={place.path}
                  className="border-line-strong hover:bg-hover flex h-9 items-center gap-2 rounded-md border px-3 text-sm font-medium"
                >
                  <Icon name={place.icon} className="text-ink-faint" />
                  {place.name}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      </div>
    </Screen>
  );
}
