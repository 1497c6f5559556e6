// Replaces the package react-style-singleton. Radix' dialogs and menus use that package to stop the page
// behind them from scrolling. It adds a <style> element, which our Content-Security-Policy forbids. A
// stylesheet that a script constructs is allowed.

import { useEffect } from "react";

interface Singleton {
  add(text: string): void;
  remove(): void;
}

/** A stylesheet that applies from the first `add` to the last `remove`. */
export function stylesheetSingleton(): Singleton {
  let users = 0;
  let sheet: CSSStyleSheet | null = null;
  return {
    add(text) {
      users += 1;
      if (users === 1) {
        sheet = new CSSStyleSheet();
        sheet.replaceSync(text);
        document.adoptedStyleSheets.push(sheet);
      }
    },
    remove() {
      users -= 1;
      if (users === 0) {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
        sheet = null;
      }
    },
  };
}

export function styleHookSingleton(): (text: string, isDynamic?: boolean) => void {
  const sheet = stylesheetSingleton();
  return function useSheet(text, isDynamic) {
    const key = isDynamic ? text : "";
    // biome-ignore lint/correctness/useExhaustiveDependencies: the text counts only where it may change
    useEffect(() => {
      sheet.add(text);
      return () => sheet.remove();
    }, [key]);
  };
}

export function styleSingleton(): (props: { styles: string; dynamic?: boolean }) => null {
  const useSheet = styleHookSingleton();
  return function Sheet({ styles, dynamic }) {
    useSheet(styles, dynamic);
    return null;
  };
}
