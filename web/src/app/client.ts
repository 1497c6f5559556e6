import { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "@/api/problem";

const MAX_TRIES = 3;

export function makeClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The stream keeps what is shown up to date; this is for what is shown again.
        staleTime: 5000,
        // Whether there is a network, only the server can tell: it may be this machine.
        networkMode: "always",
        retry: (tries, error) => error instanceof ProblemError && error.isPassing && tries < MAX_TRIES,
        retryDelay: (tries, error) =>
          error instanceof ProblemError && error.retryAfter !== null
            ? error.retryAfter * 1000
            : Math.min(1000 * 2 ** tries, 10_000),
      },
      // Nobody expects an act that failed to happen later, when the connection is back.
      mutations: { networkMode: "always", retry: false },
    },
  });
}
