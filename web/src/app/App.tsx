import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { whenSignedOut } from "@/api/client";
import { me } from "@/api/session";
import { useLocation } from "@/routing/location";
import { SignIn } from "@/screens/sign-in/SignIn";
import { Shell } from "@/shell/Shell";
import { Mark } from "@/ui/Mark";
import { ErrorState, Skeleton } from "@/ui/State";
import { Toasts } from "@/ui/Toasts";
import { TooltipProvider } from "@/ui/Tooltip";
import { Boundary } from "./Boundary";
import { makeClient } from "./client";
import { screenOf } from "./screens";

const client = makeClient();
whenSignedOut(() => client.setQueryData(me.queryKey, null));

export function App() {
  return (
    <QueryClientProvider client={client}>
      <TooltipProvider delayDuration={300} skipDelayDuration={200}>
        <Boundary isOutermost>
          <Door />
        </Boundary>
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  );
}

/** Show the sign-in form, at any address, to users who are not signed in. The address stays, so they see the
 * page that they wanted after signing in. */
function Door() {
  const known = useQuery(me);
  if (known.data) {
    return (
      <Shell>
        <Screen />
      </Shell>
    );
  }
  if (known.data === null) {
    return <SignIn />;
  }
  return (
    <main className="grid min-h-dvh place-items-center">
      {known.error ? (
        <ErrorState error={known.error} onRetry={() => known.refetch()} />
      ) : (
        <div role="status" className="animate-waiting">
          <Mark size={40} />
          <span className="sr-only">Loading</span>
        </div>
      )}
    </main>
  );
}

function Screen() {
  const { path } = useLocation();
  const { key, element } = screenOf(path);
  return (
    <Boundary key={key}>
      <Suspense fallback={<Waiting />}>{element}</Suspense>
    </Boundary>
  );
}

function Waiting() {
  return (
    <div className="flex flex-col gap-4" role="status">
      <span className="sr-only">Loading</span>
      <Skeleton className="h-8 w-48" />
      <Skeleton className="h-24" />
      <Skeleton className="h-64" />
    </div>
  );
}
