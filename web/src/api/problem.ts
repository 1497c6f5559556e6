// Errors: problem documents from the server (RFC 9457), and failed connections.

import type { ProblemDocument } from "./types";

export class ProblemError extends Error {
  override name = "ProblemError";

  constructor(
    /** HTTP status; 0: there was no answer. */
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly requestId: string = "",
    readonly errors: NonNullable<ProblemDocument["errors"]> = [],
    /** Seconds from the Retry-After header; null: not given. */
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
  }

  static unreachable(): ProblemError {
    return new ProblemError(0, "unreachable", "The server can't be reached.");
  }

  /** Make an error from an error response. The body may be anything. */
  static of(response: Response, body: unknown): ProblemError {
    const told = isObject(body) ? (body as Partial<ProblemDocument>) : {};
    const wait = Number(response.headers.get("retry-after") ?? "");
    return new ProblemError(
      response.status,
      told.code ?? "unknown",
      sentence(told.detail ?? `The server answered ${response.status}.`),
      told.request_id ?? "",
      told.errors ?? [],
      wait > 0 ? wait : null,
    );
  }

  /** Whether the same request may succeed a little later. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface FieldProblem {
  text: string;
  hint: string;
}

/** The error of one form field; null: none. `pointer` is a JSON pointer such as `/trigger/timezone`. */
export function problemOf(error: unknown, pointer: string): FieldProblem | null {
  if (!(error instanceof ProblemError)) {
    return null;
  }
  const found = error.errors.find((each) => each.pointer === pointer);
  return found === undefined
    ? null
    : { text: sentence(found.detail), hint: found.hint && sentence(found.hint) };
}

/** The errors that do not belong to the fields in `pointers`, which show their own; null: none. */
export function problemBesides(error: unknown, pointers: readonly string[]): string | null {
  if (error === null || error === undefined) {
    return null;
  }
  if (!(error instanceof ProblemError) || error.errors.length === 0) {
    return textOf(error);
  }
  const others = error.errors.filter((each) => !pointers.includes(each.pointer));
  if (others.length === 0) {
    return null;
  }
  return others
    .map((each) => sentence(`${each.pointer.slice(1).replaceAll("/", ".")} ${each.detail}`.trim()))
    .join(" ");
}

/** Whether the request may have taken effect: the connection was lost before the answer. */
export function isInDoubt(error: unknown): boolean {
  return error instanceof ProblemError && error.code === "no_answer";
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : "Something went wrong.";
}

/** Make a sentence of a detail: the server's begin in lower case and have no full stop. */
function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
