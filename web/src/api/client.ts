// The HTTP client; every API request goes through it. Its types are generated from openapi.json, so a call
// that the API does not offer does not compile.
//
//     const me = await ask(api.GET("/api/v1/me"));

import createClient from "openapi-fetch";
import { base } from "@/routing/base";
import { noteAnswer, noteSilence } from "./connection";
import { ProblemError } from "./problem";
import type { paths } from "./schema";

export const api = createClient<paths>({ baseUrl: base });

let csrfToken: string | null = null;
let onSignedOut: () => void = () => {};

/** Set the CSRF token from GET /me. It is sent with every request that is not a GET. */
export function rememberCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Set the function to call when the server answers 401: not signed in, or the session has ended. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

api.use({
  onRequest({ request }) {
    if (request.method !== "GET" && csrfToken !== null) {
      request.headers.set("X-CSRF-Token", csrfToken);
    }
    return request;
  },
  onResponse({ response }) {
    if (isFromServer(response)) {
      noteAnswer();
    } else {
      noteSilence();
    }
    if (response.status === 401) {
      onSignedOut();
    }
  },
  onError({ request }) {
    if (!request.signal.aborted) {
      noteSilence();
    }
    return ProblemError.unreachable();
  },
});

/** Whether Foliot itself answered. False: a proxy answered because it can't reach the server. */
function isFromServer(response: Response): boolean {
  return (
    ![502, 503, 504].includes(response.status) ||
    (response.headers.get("content-type") ?? "").startsWith("application/problem+json")
  );
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Return the body of a response. Throws a ProblemError if the request did not succeed. */
export async function ask<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!isFromServer(response)) {
    throw ProblemError.unreachable();
  }
  if (!response.ok) {
    throw ProblemError.of(response, error);
  }
  return data as T;
}

/** Send a request that starts work. If the server can't be reached, nothing is sent, so the user can be sure
 * that nothing was started. */
export async function start<T>(send: () => Promise<Answer<T>>): Promise<T> {
  try {
    await ask(api.GET("/api/v1/me"));
  } catch (error) {
    if (isUnanswered(error)) {
      throw new ProblemError(0, "unreachable", "The server can't be reached. Nothing was started.");
    }
    // The server is reachable: the request below gets the real error.
  }
  try {
    return await ask(send());
  } catch (error) {
    throw isUnanswered(error)
      ? new ProblemError(
          0,
          "no_answer",
          "The connection was lost before the server answered. It may have been started: look at the executions.",
        )
      : error;
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 0;
}

/** A random `Idempotency-Key`: a request that is sent twice takes effect once. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is missing on pages without TLS
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Type a partial request body as a full one; the server fills in the defaults. The generated types require
 * every field because they also describe responses. */
export function given<T>(parts: Partial<T>): T {
  return parts as T;
}
