// The one way to the server. Types come from openapi.json, so that a call that the API does not have does not
// compile.
//
//     const me = await ask(api.GET("/api/v1/me"));

import createClient from "openapi-fetch";
import { base } from "@/routing/base";
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
    if (response.status === 401) {
      onSignedOut();
    }
  },
  onError() {
    return ProblemError.unreachable();
  },
});

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** What was answered. Throws a ProblemError for everything that is not a success. */
export async function ask<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) {
    throw ProblemError.of(response, error);
  }
  return data as T;
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
