import { Link } from "@/routing/Link";
import { useLocation } from "@/routing/location";
import { isOneOf, kept, useKept } from "@/settings/kept";
import { IconButton } from "@/ui/Button";
import { Icon } from "@/ui/Icon";
import { Mark } from "@/ui/Mark";
import { Tooltip } from "@/ui/Tooltip";
import { useIsWide } from "@/ui/width";
import { isAt, PLACES } from "./places";

const WIDTHS = ["fitting", "wide", "narrow"] as const;
const width = kept<(typeof WIDTHS)[number]>("navigation", "fitting", isOneOf(WIDTHS));

/** The navigation at the side. It shows only icons if the screen is narrow, or if the user chose that. */
export function SideNavigation() {
  const hasRoom = useIsWide();
  const wanted = useKept(width);
  const isWide = wanted === "wide" || (wanted === "fitting" && hasRoom);
  return (
    <nav
      aria-label="Main"
      className={`border-line bg-surface sticky top-0 hidden h-dvh shrink-0 flex-col border-r p-2.5 md:flex ${isWide ? "w-52" : "w-14"}`}
    >
      <Brand isWide={isWide} />
      <Places isWide={isWide} />
      <div className="mt-auto">
        <IconButton
          icon="rail"
          label={isWide ? "Narrow navigation" : "Wide navigation"}
          side="right"
          aria-expanded={isWide}
          onClick={() => width.set(isWide ? "narrow" : "wide")}
        />
      </div>
    </nav>
  );
}

export function Brand({ isWide }: { isWide: boolean }) {
  return (
    <Link
      href="/"
      aria-label="Foliot, overview"
      className="mb-3 flex h-9 items-center gap-2 rounded-md px-1.5"
    >
      <Mark />
      {isWide && <span className="text-lg font-semibold tracking-tight">Foliot</span>}
    </Link>
  );
}

interface PlacesProps {
  isWide: boolean;
  onGo?: () => void;
}

export function Places({ isWide, onGo }: PlacesProps) {
  const { path } = useLocation();
  return (
    <ul className="flex flex-col gap-0.5">
      {PLACES.map((place) => {
        const isHere = isAt(place, path);
        const link = (
          <Link
            href={place.path}
            aria-current={isHere ? "page" : undefined}
            aria-label={isWide ? undefined : place.name}
            onClick={onGo}
            className={`flex h-8 items-center gap-2.5 rounded-md px-2 text-sm font-medium transition-colors ${
              isHere ? "bg-accent-soft text-accent" : "text-ink-soft hover:bg-hover hover:text-ink"
            } ${isWide ? "" : "w-9 justify-center"}`}
          >
            <Icon name={place.icon} />
            {isWide && place.name}
          </Link>
        );
        return (
          <li key={place.path}>
            {isWide ? (
              link
            ) : (
              <Tooltip text={place.name} side="right">
                {link}
              </Tooltip>
            )}
          </li>
        );
      })}
    </ul>
  );
}
