import { type ReactNode, useId } from "react";

interface Props {
  title: ReactNode;
  /** Content beside the title. */
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
}

/** A section of a screen with its own title. */
export function Card({ title, aside, children, className = "" }: Props) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className={`border-line bg-surface shadow-low flex min-w-0 flex-col rounded-lg border ${className}`}
    >
      <header className="flex min-h-10 items-center gap-2 px-4 pt-2.5 pb-1">
        <h2 id={id} className="text-sm font-semibold">
          {title}
        </h2>
        {aside && <div className="ml-auto">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
