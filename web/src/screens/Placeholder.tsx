import { Screen } from "@/shell/Screen";
import { CodeBlock } from "@/ui/Code";
import { EmptyState } from "@/ui/State";

interface Props {
  title: string;
  /** CLI commands that do what this screen will do. */
  commands: readonly string[];
}

/** Placeholder for a screen that is not implemented yet. */
export function Placeholder({ title, commands }: Props) {
  return (
    <Screen title={title}>
      <div className="border-line bg-surface shadow-low rounded-lg border">
        <EmptyState icon="terminal" title="This screen is not here yet">
          <p className="mb-3">On the command line:</p>
          <div className="text-left">
            <CodeBlock code={commands.join("\n")} what="the command" />
          </div>
        </EmptyState>
      </div>
    </Screen>
  );
}
