import { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "@/api/problem";

const MAX_TRIES = 3;

export function makeClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The stream keeps data on the page up to date. This is for data that is shown again later.
        staleTime: 5000,
        // Send requests even if the browser says that it is offline: the server may run on this machine.
        networkMode: "always",
        retry: (tries, error) => error instanceof ProblemError && error.isPassing && tries < MAX_TRIES,
        retryDelay: (tries, error) =>
          error instanceof ProblemError && error.retryAfter !== null
            ? error.retryAfter * 1000
            : Math.min(1000 * 2 ** tries, 10_000),
      },
      // No retries: an action that failed must not happen later, when nobody expects it.
      mutations: { networkMode: "always", retry: false },
    },
  });
}
