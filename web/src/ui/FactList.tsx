import type { ReactNode } from "react";

interface Props {
  facts: readonly (readonly [name: string, value: ReactNode])[];
}

/** A list of names and values in two columns. */
export function FactList({ facts }: Props) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {facts.map(([name, value]) => (
        <div key={name} className="col-span-2 grid grid-cols-subgrid">
          <dt className="text-ink-soft">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
