import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLive } from "@/api/live";
import { useLocation } from "@/routing/location";
import { Header } from "./Header";
import { opensFinder } from "./keys";
import { SideNavigation } from "./Navigation";
import { QuickFinder } from "./QuickFinder";
import { Shortcuts } from "./Shortcuts";
import { TroubleBanner } from "./TroubleBanner";

/** The layout around every screen: navigation, header and banner. */
export function Shell({ children }: { children: ReactNode }) {
  useLive();
  const [isFinding, setFinding] = useState(false);
  useEffect(() => {
    function listen(event: KeyboardEvent) {
      if (opensFinder(event)) {
        event.preventDefault();
        setFinding(true);
      }
    }
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <a
        href="#main"
        className="bg-accent text-on-accent fixed top-2 left-2 z-50 -translate-y-16 rounded-md px-3 py-2 text-sm font-medium focus:translate-y-0"
      >
        Skip to the content
      </a>
      <div className="flex min-h-dvh">
        <SideNavigation />
        <div className="flex min-w-0 grow flex-col">
          <Header onFind={() => setFinding(true)} />
          <TroubleBanner />
          <Main>{children}</Main>
        </div>
      </div>
      <QuickFinder isOpen={isFinding} onOpenChange={setFinding} />
      <Shortcuts />
    </>
  );
}

/** The main area. It takes the focus when the screen changes, so that screen readers continue there. */
function Main({ children }: { children: ReactNode }) {
  const main = useRef<HTMLElement>(null);
  const { path } = useLocation();
  const screen = path.split("/")[1];
  const shown = useRef(screen);
  useEffect(() => {
    if (shown.current !== screen) {
      shown.current = screen;
      main.current?.focus({ preventScroll: true });
    }
  }, [screen]);
  return (
    <main
      id="main"
      ref={main}
      tabIndex={-1}
      className="mx-auto w-full max-w-[110rem] grow px-4 py-5 outline-none focus-visible:outline-none sm:px-5"
    >
      {children}
    </main>
  );
}
