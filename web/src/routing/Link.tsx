import type { ComponentProps, MouseEvent } from "react";
import { base } from "./base";
import { navigate } from "./location";

interface Props extends ComponentProps<"a"> {
  href: string;
}

/** A link within the application. Clicks with a modifier key work as usual and can open a new tab. */
export function Link({ href, onClick, ...rest }: Props) {
  function follow(event: MouseEvent<HTMLAnchorElement>) {
    onClick?.(event);
    const wantsAnother =
      event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;
    if (event.defaultPrevented || wantsAnother) {
      return;
    }
    event.preventDefault();
    navigate(href);
  }
  return <a href={base + href} onClick={follow} {...rest} />;
}
