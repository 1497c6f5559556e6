import { Component, type ReactNode } from "react";
import { Fault } from "@/screens/fault";

interface Props {
  children: ReactNode;
  /** Whether it is around the whole application: the navigation is replaced too. */
  isOutermost?: boolean;
}

interface State {
  error: unknown;
}

/** Error boundary: an error in one screen does not break the others. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error ?? new Error("Something that is no error was thrown.") };
  }

  override render() {
    if (this.state.error === null) {
      return this.props.children;
    }
    const fault = <Fault error={this.state.error} onRetry={() => this.setState({ error: null })} />;
    return this.props.isOutermost ? <main className="mx-auto max-w-4xl p-6">{fault}</main> : fault;
  }
}
