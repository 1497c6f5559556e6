import { useEffect, useState } from "react";
import { IconButton } from "./Button";

/** Copy a text to the clipboard; false: the browser does not allow it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // the clipboard API needs TLS
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr-only";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
  }
}

interface Props {
  text: string;
  /** What is copied: "the command", "the id". */
  what: string;
  className?: string;
}

export function CopyButton({ text, what, className = "" }: Props) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 1600);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <span className={className}>
      <IconButton
        icon={isCopied ? "check" : "copy"}
        label={isCopied ? "Copied" : `Copy ${what}`}
        className={isCopied ? "text-good" : ""}
        onClick={async () => setCopied(await copyText(text))}
      />
      <span role="status" className="sr-only">
        {isCopied ? `Copied ${what}` : ""}
      </span>
    </span>
  );
}
