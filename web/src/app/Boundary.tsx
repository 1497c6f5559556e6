import { Component, type ReactNode } from "react";
import { ErrorState } from "@/ui/State";

interface State {
  error: unknown;
}

/** Keeps a fault in one screen from taking the others with it. */
export class Boundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render() {
    if (this.state.error === null) {
      return this.props.children;
    }
    return <ErrorState error={this.state.error} onRetry={() => window.location.reload()} />;
  }
}
