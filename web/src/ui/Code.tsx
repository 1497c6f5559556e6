import { type ReactNode, useState } from "react";
import { CopyButton } from "./Copy";
import { Icon } from "./Icon";

interface CodeBlockProps {
  code: string;
  /** What the code is, for the label of the copy button. */
  what: string;
}

/** A block of monospaced text with a copy button. */
export function CodeBlock({ code, what }: CodeBlockProps) {
  return (
    <div className="border-line bg-sunken relative rounded-lg border">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section aria-label={what} tabIndex={0} className="overflow-x-auto rounded-lg">
        <pre className="w-fit p-3 pr-11 font-mono text-xs leading-5">{code}</pre>
      </section>
      <CopyButton text={code} what={what} className="bg-sunken absolute top-1 right-1 rounded-md" />
    </div>
  );
}

/** A JSON value as a tree. Long or deep parts are collapsed at first. */
export function JsonView({ value, what }: { value: unknown; what: string }) {
  return (
    <div className="border-line bg-sunken relative rounded-lg border">
      <div className="overflow-x-auto p-3 pr-11 font-mono text-xs leading-5">
        <Node value={value} depth={0} />
      </div>
      <CopyButton text={JSON.stringify(value, null, 2)} what={what} className="absolute top-1 right-1" />
    </div>
  );
}

const OPEN_DEPTH = 3;
const MAX_OPEN = 30;
const MAX_SHOWN = 200;

function Node({ value, depth, name }: { value: unknown; depth: number; name?: string }) {
  const entries = entriesOf(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && (entries?.length ?? 0) <= MAX_OPEN);
  const [most, setMost] = useState(MAX_SHOWN);
  const label: ReactNode = name === undefined ? null : <span className="text-ink-soft">{name}: </span>;
  if (entries === null) {
    return (
      <div className="pl-4 break-words">
        {label}
        <Leaf value={value} />
      </div>
    );
  }
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return (
      <div className="pl-4">
        {label}
        {open}
        {close}
      </div>
    );
  }
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="hover:bg-hover flex min-h-6 items-center rounded text-left"
      >
        <Icon name={isOpen ? "down" : "right"} size={12} className="text-ink-faint mr-1" />
        <span>
          {label}
          {open}
          {!isOpen && (
            <span className="text-ink-faint">
              {" "}
              {entries.length} {close}
            </span>
          )}
        </span>
      </button>
      {isOpen && (
        <>
          <div className="border-line ml-1.5 border-l pl-2">
            {entries.slice(0, most).map(([key, item]) => (
              <Node key={key} name={key} value={item} depth={depth + 1} />
            ))}
            {entries.length > most && (
              <button
                type="button"
                className="text-accent pl-4 hover:underline"
                onClick={() => setMost(most + MAX_SHOWN)}
              >
                {entries.length - most} more
              </button>
            )}
          </div>
          <div className="pl-4">{close}</div>
        </>
      )}
    </div>
  );
}

function entriesOf(value: unknown): [string, unknown][] | null {
  return typeof value === "object" && value !== null ? Object.entries(value) : null;
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === "string") {
    return <span className="text-good whitespace-pre-wrap">{JSON.stringify(value)}</span>;
  }
  if (typeof value === "number") {
    return <span className="text-busy">{String(value)}</span>;
  }
  return <span className="text-odd">{JSON.stringify(value)}</span>;
}
