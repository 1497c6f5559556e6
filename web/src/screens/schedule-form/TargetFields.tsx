import { useQuery } from "@tanstack/react-query";
import { kinds, type TaskFunction } from "@/api/schedule-editing";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import type { IconName } from "@/ui/Icon";
import { ArgumentsForm } from "./ArgumentsForm";
import { Choices, Group, Pairs, ProblemLine } from "./controls";
import type { HttpMethod, TargetKind } from "./draft";
import { useForm } from "./form";
import { TaskPicker } from "./TaskPicker";

const KINDS: readonly { value: TargetKind; label: string; icon: IconName }[] = [
  { value: "function", label: "Task function", icon: "function" },
  { value: "http", label: "HTTP", icon: "http" },
  { value: "event", label: "Event", icon: "event" },
  { value: "celery", label: "Celery", icon: "celery" },
];
const METHODS: readonly HttpMethod[] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is what users write
const SECRETS = "Secrets stand in it as ${secret:name}; their values are filled in when it runs.";

/** Form fields for the target: what the schedule runs. */
export function TargetFields({ task }: { task: TaskFunction | null }) {
  const { draft, changeTarget, problem } = useForm();
  const known = useQuery(kinds).data?.items ?? [];
  return (
    <Group title="What">
      <Choices
        legend="Kind of target"
        isLegendHidden
        value={draft.target.kind}
        choices={KINDS.map((choice) => {
          const told = known.find((each) => each.family === "target" && each.name === choice.value);
          return {
            ...choice,
            whyNot: told && !told.is_available ? "this server can't carry it out." : null,
          };
        })}
        onChange={(kind) => changeTarget({ kind })}
      />
      <ProblemLine problem={problem("/target/kind") ?? problem("/target")} />
      <KindFields kind={draft.target.kind} task={task} />
    </Group>
  );
}

function KindFields({ kind, task }: { kind: TargetKind; task: TaskFunction | null }) {
  const { draft, changeTarget, problem, fields } = useForm();
  const { target } = draft;
  switch (kind) {
    case "function":
      return (
        <>
          <TaskPicker
            value={target.task}
            known={task}
            problem={problem("/target/name")}
            onChange={(name) => changeTarget({ task: name, args: { ...target.args, value: {}, json: null } })}
          />
          {target.task !== "" && (
            <ArgumentsForm
              fields={fields}
              draft={target.args}
              onChange={(args) => changeTarget({ args })}
              problem={(name) => problem(name === "" ? "/target/args" : `/target/args/${name}`)}
            />
          )}
        </>
      );
    case "http":
      return (
        <>
          <div className="grid grid-cols-[7rem_1fr] gap-2">
            <SelectField
              label="Method"
              value={target.method}
              choices={METHODS.map((method) => ({ value: method, label: method }))}
              onChange={(method) => changeTarget({ method })}
            />
            <TextField
              label="Address"
              type="text"
              inputMode="url"
              placeholder="https://agent.example/run"
              value={target.url}
              onChange={(url) => changeTarget({ url })}
              spellCheck={false}
              autoComplete="off"
              problem={problem("/target/url")}
            />
          </div>
          <Pairs
            legend="Headers"
            one="header"
            nameHint="Authorization"
            valueHint="Bearer ${secret:agent_token}"
            hint={SECRETS}
            pairs={target.headers}
            onChange={(headers) => changeTarget({ headers })}
            problem={problem("/target/headers")}
          />
          <TextArea
            label="Body"
            rows={4}
            spellCheck={false}
            placeholder='{"report": "daily"}'
            className="font-mono text-xs"
            value={target.body}
            onChange={(body) => changeTarget({ body })}
            problem={problem("/target/body")}
            hint="JSON. Left empty: none."
          />
          <TextField
            label="Counts as success"
            placeholder="any 2xx"
            value={target.expected}
            onChange={(expected) => changeTarget({ expected })}
            problem={problem("/target/expected_status")}
            hint="Status codes, such as 200, 202. Left empty: any 2xx."
            className="sm:w-64"
          />
        </>
      );
    case "event":
      return (
        <>
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              label="Topic"
              value={target.topic}
              onChange={(topic) => changeTarget({ topic })}
              problem={problem("/target/event_topic")}
            />
            <TextField
              label="Type"
              value={target.type}
              onChange={(type) => changeTarget({ type })}
              problem={problem("/target/event_type")}
            />
          </div>
          <TextArea
            label="Data"
            rows={4}
            spellCheck={false}
            className="font-mono text-xs"
            value={target.data}
            onChange={(data) => changeTarget({ data })}
            problem={problem("/target/event_data")}
            hint="A JSON object, or text that holds a CloudEvent."
          />
        </>
      );
    case "celery":
      return (
        <>
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              label="Task"
              placeholder="proj.tasks.clean"
              value={target.celeryTask}
              onChange={(celeryTask) => changeTarget({ celeryTask })}
              problem={problem("/target/task")}
            />
            <TextField
              label="Celery queue"
              value={target.celeryQueue}
              onChange={(celeryQueue) => changeTarget({ celeryQueue })}
              problem={problem("/target/queue")}
              hint="Left empty: as Celery routes it."
            />
          </div>
          <TextArea
            label="Positional arguments"
            rows={2}
            spellCheck={false}
            className="font-mono text-xs"
            value={target.celeryArgs}
            onChange={(celeryArgs) => changeTarget({ celeryArgs })}
            problem={problem("/target/args")}
            hint="A JSON list."
          />
          <TextArea
            label="Keyword arguments"
            rows={3}
            spellCheck={false}
            className="font-mono text-xs"
            value={target.celeryKwargs}
            onChange={(celeryKwargs) => changeTarget({ celeryKwargs })}
            problem={problem("/target/kwargs")}
            hint="A JSON object."
          />
        </>
      );
  }
}
