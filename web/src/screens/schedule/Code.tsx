import type { Schedule } from "@/api/types";
import { serverUrl } from "@/routing/base";
import { Choices } from "@/screens/schedule-form/controls";
import { definitionOf } from "@/screens/schedule-form/definition";
import { CodeBlock } from "@/ui/Code";
import { CODES, type CodeKind } from "./address";
import { pythonOf } from "./code/python";
import { commandOf, curlOf, yamlFileOf } from "./code/shell";

const WORDS: Record<CodeKind, { label: string; note: string }> = {
  cli: { label: "CLI", note: "Makes the same schedule on the command line." },
  yaml: {
    label: "YAML",
    note: "For a file kept in version control: foliot schedule apply -f schedules.yaml",
  },
  python: { label: "Python", note: "Declared in code: restarts never double it." },
  curl: { label: "curl", note: "A request to the API; FOLIOT_KEY is an API key of the role editor." },
};

interface Props {
  schedule: Schedule;
  kind: CodeKind;
  onKind: (kind: CodeKind) => void;
}

/** The schedule as code or commands, to copy. Default values are left out. */
export function Code({ schedule, kind, onKind }: Props) {
  return (
    <div className="flex flex-col gap-3">
      <Choices
        legend="Copy as"
        isLegendHidden
        value={kind}
        choices={CODES.map((value) => ({ value, label: WORDS[value].label }))}
        onChange={onKind}
      />
      <p className="text-ink-soft text-sm">{WORDS[kind].note}</p>
      <CodeBlock code={codeOf(schedule, kind)} what={`the ${WORDS[kind].label}`} />
    </div>
  );
}

function codeOf(schedule: Schedule, kind: CodeKind): string {
  const definition = definitionOf(schedule);
  switch (kind) {
    case "cli":
      return commandOf(definition);
    case "yaml":
      return yamlFileOf(definition);
    case "python":
      return pythonOf(definition, serverUrl());
    case "curl":
      return curlOf(definition, serverUrl());
  }
}
