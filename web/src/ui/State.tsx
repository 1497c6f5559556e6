// Placeholders for content that is loading, empty or failed to load.

import type { ReactNode } from "react";
import { ProblemError, textOf } from "@/api/problem";
import { Button } from "./Button";
import { Icon, type IconName } from "./Icon";

export function Skeleton({ className = "" }: { className?: string }) {
  return <div aria-hidden="true" className={`animate-waiting bg-line rounded ${className}`} />;
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
  /** Smaller, for use within a card. */
  isSmall?: boolean;
}

export function EmptyState({ icon, title, children, isSmall = false }: EmptyProps) {
  return (
    <div
      className={`flex grow flex-col items-center justify-center gap-2 px-6 text-center ${isSmall ? "py-6 text-sm" : "py-14"}`}
    >
      <span className="bg-sunken text-ink-faint grid size-10 place-items-center rounded-full">
        <Icon name={icon} size={20} />
      </span>
      <p className="font-medium">{title}</p>
      {children && <div className="text-ink-soft max-w-md text-sm">{children}</div>}
    </div>
  );
}

export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  const requestId = error instanceof ProblemError ? error.requestId : "";
  return (
    <div role="alert" className="flex flex-col items-center gap-2 px-6 py-14 text-center">
      <span className="bg-bad-soft text-bad grid size-10 place-items-center rounded-full">
        <Icon name="warning" size={20} />
      </span>
      <p className="font-medium">This can't be shown now.</p>
      <p className="text-ink-soft max-w-md text-sm break-words">{textOf(error)}</p>
      {requestId && <p className="text-ink-faint text-xs">Request {requestId}</p>}
      {onRetry && (
        <Button icon="retry" onClick={onRetry} className="mt-1">
          Try again
        </Button>
      )}
    </div>
  );
}
