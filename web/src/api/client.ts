// The one way to the server. Types come from openapi.json, so that a call that the API does not have does not
// compile.
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

/** GET /me tells it; every change carries it. */
export function rememberCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Called when the server does not know this browser, or not any more. */
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

/** A proxy answers for a server that it can't reach. */
function isFromServer(response: Response): boolean {
  return (
    ![502, 503, 504].includes(response.status) ||
    (response.headers.get("content-type") ?? "").startsWith("application/problem+json")
  );
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** What was answered. Throws a ProblemError for everything that is not a success. */
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

/** Sends what starts work. Without a connection it is not sent, so that it is certain that nothing was started. */
export async function start<T>(send: () => Promise<Answer<T>>): Promise<T> {
  try {
    await ask(api.GET("/api/v1/me"));
  } catch (error) {
    if (isUnanswered(error)) {
      throw new ProblemError(0, "unreachable", "The server can't be reached. Nothing was started.");
    }
    // It answers, and says itself what is wrong.
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

/** For `Idempotency-Key`: a change that is sent twice happens once. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is missing where there is no TLS
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A body of which some parts are left out: the server gives them their defaults. The types ask for all of them,
 * since they describe what it answers as well. */
export function given<T>(parts: Partial<T>): T {
  return parts as T;
}
