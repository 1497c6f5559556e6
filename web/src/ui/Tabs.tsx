import * as Radix from "@radix-ui/react-tabs";
import type { ReactNode } from "react";

interface Props<T extends string> {
  label: string;
  value: T;
  onChange: (value: T) => void;
  tabs: readonly { value: T; label: ReactNode; content: ReactNode }[];
}

export function Tabs<T extends string>({ label, value, onChange, tabs }: Props<T>) {
  return (
    <Radix.Root value={value} onValueChange={(chosen) => onChange(chosen as T)}>
      <Radix.List aria-label={label} className="border-line flex gap-4 border-b">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="text-ink-soft data-[state=active]:border-accent data-[state=active]:text-ink hover:text-ink -mb-px rounded-t border-b-2 border-transparent px-0.5 pt-1 pb-2 text-sm font-medium"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className="pt-4">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
