import { useEffect, useRef } from "react";
import { CopyButton } from "@/ui/Copy";

/** Long preformatted text. Lines wrap, so that nothing is hidden to the right. */
export function Traceback({ text, what }: { text: string; what: string }) {
  const box = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text begins anew
  useEffect(() => {
    // The end of a traceback matters most.
    box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [text]);
  return (
    <div className="border-line bg-sunken relative rounded-lg border">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section ref={box} aria-label={what} tabIndex={0} className="max-h-96 overflow-y-auto rounded-lg">
        <pre className="p-3 pr-11 font-mono text-xs leading-5 [overflow-wrap:anywhere] whitespace-pre-wrap">
          {text}
        </pre>
      </section>
      <CopyButton text={text} what={what} className="absolute top-1 right-1" />
    </div>
  );
}
