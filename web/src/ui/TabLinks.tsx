import type { ReactNode } from "react";
import { Link } from "@/routing/Link";

interface TabLink {
  href: string;
  label: string;
  /** A word or number beside the link. */
  aside?: ReactNode;
  isHere: boolean;
}

/** Tabs of a screen that have an address each. On narrow screens they scroll sideways. */
export function TabLinks({ label, links }: { label: string; links: readonly TabLink[] }) {
  return (
    <nav aria-label={label} className="border-line -mx-4 mb-4 overflow-x-auto border-b px-4 sm:mx-0 sm:px-0">
      <ul className="flex gap-1">
        {links.map((link) => (
          <li key={link.href}>
            <Link
              href={link.href}
              aria-current={link.isHere ? "page" : undefined}
              // Scroll the current tab into view.
              ref={(element) => {
                if (link.isHere) element?.scrollIntoView({ block: "nearest", inline: "nearest" });
              }}
              className={`flex h-9 items-center gap-1.5 rounded-t border-b-2 px-2.5 text-sm font-medium whitespace-nowrap focus-visible:-outline-offset-2 ${
                link.isHere ? "border-accent text-ink" : "text-ink-soft hover:text-ink border-transparent"
              }`}
            >
              {link.label}
              {link.aside}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
