// Assigns problems to form controls. Pure functions.

import type { FieldProblem } from "@/api/problem";
import { ProblemError, textOf } from "@/api/problem";

/** Problems by the JSON pointer of the control that shows them. `besides`: those that no control shows. */
export interface Problems {
  readonly byField: ReadonlyMap<string, FieldProblem>;
  readonly besides: string | null;
}

export const NO_PROBLEMS: Problems = { byField: new Map(), besides: null };

/** The control that shows a problem: the deepest one whose pointer contains the problem's pointer. */
function holderOf(pointer: string, shown: readonly string[]): string | null {
  const above = shown.filter((each) => each === pointer || pointer.startsWith(`${each}/`));
  return above.reduce<string | null>(
    (best, each) => (best === null || each.length > best.length ? each : best),
    null,
  );
}

/** Collect all problems. `own`: found in the browser; they take precedence over the server's. */
export function problemsOf(
  error: unknown,
  own: ReadonlyMap<string, string>,
  shown: readonly string[],
): Problems {
  const byField = new Map<string, FieldProblem>();
  const besides: string[] = [];
  for (const [pointer, text] of own) {
    const holder = holderOf(pointer, shown);
    if (holder === null) besides.push(text);
    else if (!byField.has(holder)) byField.set(holder, { text, hint: "" });
  }
  if (error instanceof ProblemError && error.errors.length > 0) {
    for (const { pointer, detail, hint } of error.errors) {
      const holder = holderOf(pointer, shown);
      const within = holder === null ? pointer.slice(1) : pointer.slice((holder?.length ?? 0) + 1);
      const text = sentence(within === "" ? detail : `${within.replaceAll("/", ".")}: ${detail}`);
      if (holder === null) besides.push(text);
      else if (!byField.has(holder)) byField.set(holder, { text, hint: hint && sentence(hint) });
    }
  } else if (error instanceof ProblemError && error.code === "name_taken") {
    byField.set("/name", { text: error.message, hint: "" });
  } else if (error) {
    besides.push(textOf(error));
  }
  return { byField, besides: besides.length === 0 ? null : besides.join(" ") };
}

/** Make text a sentence. An identifier at its start is not capitalized. */
function sentence(text: string): string {
  const begun = /^[a-z]+[_.:-]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
