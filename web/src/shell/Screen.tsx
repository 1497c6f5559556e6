import { type ReactNode, useEffect } from "react";

interface Props {
  title: string;
  /** Beside the title. */
  actions?: ReactNode;
  children: ReactNode;
}

/** The frame of every screen: sets the document title, and shows the title and actions above the content. */
export function Screen({ title, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Foliot`;
  }, [title]);
  return (
    <>
      <div className="mb-4 flex min-h-8 flex-wrap items-center gap-2">
        <h1 className="mr-auto min-w-0 text-xl font-semibold tracking-tight [overflow-wrap:anywhere]">
          {title}
        </h1>
        {actions}
      </div>
      {children}
    </>
  );
}
