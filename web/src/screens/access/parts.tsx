import type { ReactNode } from "react";
import type { Role } from "@/api/types";
import { Badge } from "@/ui/Badge";
import { ROLE_LOOKS } from "./roles";

export function Panel({ children }: { children: ReactNode }) {
  return <div className="border-line bg-surface shadow-low relative rounded-lg border">{children}</div>;
}

/** Box that explains what a feature is for. */
export function Explained({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section
      aria-label={title}
      className="border-line bg-surface shadow-low rounded-lg border px-4 py-3 text-sm"
    >
      <h2 className="mb-1 font-semibold">{title}</h2>
      <div className="text-ink-soft flex flex-col gap-2">{children}</div>
    </section>
  );
}

export function RoleBadge({ role }: { role: Role }) {
  const { tone, icon } = ROLE_LOOKS[role];
  return (
    <Badge tone={tone} icon={icon}>
      {role}
    </Badge>
  );
}
