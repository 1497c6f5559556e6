import { Icon } from "@/ui/Icon";
import { type Difference, valueText, wordsOf } from "./difference";

interface Props {
  differences: readonly Difference[];
  /** Labels of the two sides. */
  sides?: readonly [before: string, after: string];
  /** True: neither side is older than the other. */
  isEven?: boolean;
}

/** List of differing fields with the values of both sides. */
export function Differences({ differences, sides = ["Before", "After"], isEven = false }: Props) {
  if (differences.length === 0) {
    return <p className="text-ink-soft text-sm">There is no difference.</p>;
  }
  return (
    <ul className="border-line divide-line divide-y overflow-hidden rounded-lg border text-sm">
      {differences.map(({ pointer, before, after }) => (
        <li key={pointer} className="flex flex-col gap-1 px-3 py-2">
          <span className="text-ink-soft text-xs font-medium">{wordsOf(pointer)}</span>
          <div className="grid gap-1 sm:grid-cols-2 sm:gap-2">
            <Side name={sides[0]} value={before} look={isEven ? "bg-calm-soft" : "bg-bad-soft"} icon="left" />
            <Side
              name={sides[1]}
              value={after}
              look={isEven ? "bg-accent-soft" : "bg-good-soft"}
              icon="right"
            />
          </div>
        </li>
      ))}
    </ul>
  );
}

interface SideProps {
  name: string;
  value: unknown;
  look: string;
  icon: "left" | "right";
}

function Side({ name, value, look, icon }: SideProps) {
  return (
    <div className={`flex min-w-0 items-start gap-1.5 rounded px-2 py-1 ${look}`}>
      <Icon name={icon} size={12} className="text-ink-faint mt-1" />
      <span className="sr-only">{name}: </span>
      <code className="min-w-0 font-mono text-xs leading-5 break-words whitespace-pre-wrap">
        {valueText(value)}
      </code>
    </div>
  );
}
