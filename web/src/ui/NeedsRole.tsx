import type { ReactNode } from "react";
import { ProblemError } from "@/api/problem";
import { useMe, useWhyNot } from "@/api/session";
import type { Role } from "@/api/types";
import { EmptyState } from "./State";

/** No role replaces the operator's key. */
type Needed = Role | "the operator's key";

interface Props {
  needed: Needed;
  /** Name of the hidden content: "Keys". */
  what: string;
  /** The error of the request, if any. A 403 also hides the content. */
  error?: unknown;
  children: ReactNode;
}

/** Show the children to users with the needed role. Other users see why they can't see them. */
export function NeedsRole({ needed, what, error, children }: Props) {
  const whyNot = useWhyNotSee(needed);
  const isRefused = error instanceof ProblemError && error.status === 403;
  if (whyNot === null && !isRefused) {
    return children;
  }
  return (
    <div className="border-line bg-surface shadow-low rounded-lg border">
      <EmptyState
        icon="access"
        title={needed === "the operator's key" ? `${what}: for the operator` : `${what}: needs ${needed}`}
      >
        <p>{whyNot ?? (error instanceof Error ? error.message : null)}</p>
        <p className="mt-1">
          {needed === "the operator's key"
            ? "Sign in with FOLIOT_ADMIN_KEY to see them."
            : `Ask an admin of this host for a key with the role ${needed}.`}
        </p>
      </EmptyState>
    </div>
  );
}

/** The text that says that the operator's key is needed; null: the user signed in with it. */
export function useWhyNotOperator(): string | null {
  const known = useMe();
  return known === null || known.is_operator
    ? null
    : `Takes the operator's own key, FOLIOT_ADMIN_KEY; yours is a key with the role ${known.role}.`;
}

function useWhyNotSee(needed: Needed): string | null {
  const asOperator = useWhyNotOperator();
  const asRole = useWhyNot(needed === "the operator's key" ? "admin" : needed);
  return needed === "the operator's key" ? asOperator : asRole;
}
