// The built-in kinds of targets: form, description and code of each. Order: that of the form.

import type { components } from "@/api/schema";
import { pythonText, pythonValue } from "@/screens/schedule/code/python-value";
import { Pairs } from "@/screens/schedule-form/controls";
import { isObject } from "@/screens/schedule-form/difference";
import type { KindDraft } from "@/screens/schedule-form/draft";
import { useForm } from "@/screens/schedule-form/form";
import { type Pair, pairsOf, pretty, type Reader } from "@/screens/schedule-form/reader";
import { SchemaForm } from "@/screens/schedule-form/SchemaForm";
import {
  jsonOf,
  type ObjectDraft,
  objectDraft,
  readObject,
  shownPaths,
} from "@/screens/schedule-form/schema-fields";
import { TaskPicker } from "@/screens/schedule-form/TaskPicker";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import type { Options, TargetKind } from "./kind";

type Schemas = components["schemas"];

interface FunctionValues {
  task: string;
  args: ObjectDraft;
}

/** Name of the chosen task function. Empty: none, or another kind is selected. */
export function taskIn({ kind, values }: KindDraft): string {
  return kind === "function" ? ((values.function as FunctionValues | undefined)?.task ?? "") : "";
}

const functionKind: TargetKind<Schemas["FunctionTarget"], FunctionValues> = {
  label: "Task function",
  icon: "function",
  valuesOf: (known) => ({ task: known?.name ?? "", args: objectDraft(known?.args ?? {}) }),
  read: ({ task, args }, reader, { fields }) => {
    const { value, problems } = readObject(args, fields);
    reader.add("/target/args", problems);
    return {
      name: reader.needed("/target/name", task, "Choose a task function."),
      args: value as Schemas["FunctionTarget"]["args"] & object,
    };
  },
  shown: ({ args }, { fields }) => [
    "name",
    "args",
    ...shownPaths(args, fields).map((path) => `args/${path}`),
  ],
  Fields({ values, change }) {
    const { problem, fields, task } = useForm();
    return (
      <>
        <TaskPicker
          value={values.task}
          known={task}
          problem={problem("/target/name")}
          onChange={(name) => change({ task: name, args: { ...values.args, value: {}, json: null } })}
        />
        {values.task !== "" && (
          <SchemaForm
            title="Arguments"
            none="It takes no arguments."
            isCode
            fields={fields}
            draft={values.args}
            onChange={(args) => change({ args })}
            problem={(path) => problem(path === "" ? "/target/args" : `/target/args/${path}`)}
          />
        )}
      </>
    );
  },
  line: (known) => known.name,
  details: (known) => [["Arguments", known.args]],
  python: (known) => ({
    code: pythonText(known.name),
    names: [],
    lines: Object.keys(known.args ?? {}).length > 0 ? [`args=${pythonValue(known.args, 4)}`] : [],
    note: `# ${known.name} is a function with @app.task on it.\n`,
  }),
  options: (known) => [["--function", known.name], ...argumentOptions(known.args ?? {})],
};

type Http = Schemas["HttpTarget"];

interface HttpValues {
  method: Http["method"];
  url: string;
  headers: readonly Pair[];
  body: string;
  expected: string;
}

const METHODS: readonly Http["method"][] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is what users write
const SECRETS = "Secrets stand in it as ${secret:name}; their values are filled in when it runs.";

const http: TargetKind<Http, HttpValues> = {
  label: "HTTP",
  icon: "http",
  valuesOf: (known) => ({
    method: known?.method ?? "POST",
    url: known?.url ?? "",
    headers: pairsOf(known?.headers ?? {}),
    body: known === null || known.body === null || known.body === undefined ? "" : pretty(known.body),
    expected: known?.expected_status?.join(", ") ?? "",
  }),
  read: ({ method, url, headers, body, expected }, reader) => ({
    method,
    url: reader.needed("/target/url", url, "Give an address."),
    headers: reader.pairs("/target/headers", headers),
    body: body.trim() === "" ? null : (reader.json("/target/body", body) as never),
    expected_status: statusCodes(reader, expected),
  }),
  shown: () => ["method", "url", "headers", "body", "expected_status"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <>
        <div className="grid grid-cols-[7rem_1fr] gap-2">
          <SelectField
            label="Method"
            value={values.method}
            choices={METHODS.map((method) => ({ value: method, label: method }))}
            onChange={(method) => change({ method })}
          />
          <TextField
            label="Address"
            type="text"
            inputMode="url"
            placeholder="https://agent.example/run"
            value={values.url}
            onChange={(url) => change({ url })}
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
          pairs={values.headers}
          onChange={(headers) => change({ headers })}
          problem={problem("/target/headers")}
        />
        <TextArea
          label="Body"
          rows={4}
          spellCheck={false}
          placeholder='{"report": "daily"}'
          className="font-mono text-xs"
          value={values.body}
          onChange={(body) => change({ body })}
          problem={problem("/target/body")}
          hint="JSON. Left empty: none."
        />
        <TextField
          label="Counts as success"
          placeholder="any 2xx"
          value={values.expected}
          onChange={(expected) => change({ expected })}
          problem={problem("/target/expected_status")}
          hint="Status codes, such as 200, 202. Left empty: any 2xx."
          className="sm:w-64"
        />
      </>
    );
  },
  line: (known) => `${known.method} ${known.url.replace(/^https?:\/\//, "")}`,
  title: (known) => `${known.method} ${known.url}`,
  details: (known) => [
    ["Headers", known.headers],
    ["Body", known.body],
    ["Counts as success", known.expected_status],
  ],
  python: (known) => {
    const parts = [
      pythonText(known.url),
      ...(known.method === "POST" ? [] : [`method=${pythonText(known.method)}`]),
      ...(Object.keys(known.headers ?? {}).length > 0 ? [`headers=${pythonValue(known.headers, 8)}`] : []),
      ...(known.body === null || known.body === undefined ? [] : [`body=${pythonValue(known.body, 8)}`]),
      ...(known.expected_status ? [`expected_status=${pythonValue(known.expected_status, 8)}`] : []),
    ];
    const code =
      parts.length === 1
        ? `http(${parts[0]})`
        : `http(\n${parts.map((part) => `        ${part},\n`).join("")}    )`;
    return { code, names: ["http"] };
  },
  options: (known) => {
    if (known.expected_status) return null;
    const headers = Object.entries(known.headers ?? {}).map(([name, value]): [string, string] => [
      "--header",
      `${name}: ${value}`,
    ]);
    const body: Options =
      known.body === null || known.body === undefined ? [] : [["--body", JSON.stringify(known.body)]];
    return [["--http", known.method, known.url], ...headers, ...body];
  },
};

function statusCodes(reader: Reader, text: string): [number, ...number[]] | null {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  if (parts.some((part) => !/^\d{3}$/.test(part))) {
    reader.problems.set("/target/expected_status", "Three digits each, such as 200, 202.");
  }
  const [first, ...others] = parts.map(Number);
  return first === undefined ? null : [first, ...others];
}

const event: TargetKind<Schemas["EventTarget"], { topic: string; type: string; data: string }> = {
  label: "Event",
  icon: "event",
  valuesOf: (known) => {
    const data = known?.event_data;
    return {
      topic: known?.event_topic ?? "",
      type: known?.event_type ?? "",
      data: typeof data === "string" ? data : pretty(data),
    };
  },
  read: ({ topic, type, data }, reader) => ({
    event_topic: reader.needed("/target/event_topic", topic, "Name a topic."),
    event_type: reader.needed("/target/event_type", type, "Name a type."),
    event_data: eventData(data) as never,
  }),
  shown: () => ["event_topic", "event_type", "event_data"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <>
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="Topic"
            value={values.topic}
            onChange={(topic) => change({ topic })}
            problem={problem("/target/event_topic")}
          />
          <TextField
            label="Type"
            value={values.type}
            onChange={(type) => change({ type })}
            problem={problem("/target/event_type")}
          />
        </div>
        <TextArea
          label="Data"
          rows={4}
          spellCheck={false}
          className="font-mono text-xs"
          value={values.data}
          onChange={(data) => change({ data })}
          problem={problem("/target/event_data")}
          hint="A JSON object, or text that holds a CloudEvent."
        />
      </>
    );
  },
  line: (known) => `${known.event_topic} ${known.event_type}`,
  details: (known) => [["Data", known.event_data]],
  python: () => null,
  options: (known) =>
    typeof known.event_data === "string"
      ? null
      : [["--event", known.event_topic, known.event_type], ...argumentOptions(known.event_data ?? {})],
};

/** Data of an event: a JSON object, else the text as typed. */
function eventData(text: string): unknown {
  const read = text.trim() === "" ? { value: {} } : jsonOf(text);
  return "value" in read && isObject(read.value) ? read.value : text;
}

const celery: TargetKind<
  Schemas["CeleryTarget"],
  { task: string; args: string; kwargs: string; queue: string }
> = {
  label: "Celery",
  icon: "celery",
  valuesOf: (known) => ({
    task: known?.task ?? "",
    args: pretty(known?.args ?? []),
    kwargs: pretty(known?.kwargs ?? {}),
    queue: known?.queue ?? "",
  }),
  read: ({ task, args, kwargs, queue }, reader) => ({
    task: reader.needed("/target/task", task, "Name a task."),
    args: reader.json("/target/args", args || "[]") as never,
    kwargs: reader.json("/target/kwargs", kwargs || "{}") as never,
    queue: queue.trim() || null,
  }),
  shown: () => ["task", "args", "kwargs", "queue"],
  Fields({ values, change }) {
    const { problem } = useForm();
    return (
      <>
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="Task"
            placeholder="proj.tasks.clean"
            value={values.task}
            onChange={(task) => change({ task })}
            problem={problem("/target/task")}
          />
          <TextField
            label="Celery queue"
            value={values.queue}
            onChange={(queue) => change({ queue })}
            problem={problem("/target/queue")}
            hint="Left empty: as Celery routes it."
          />
        </div>
        <TextArea
          label="Positional arguments"
          rows={2}
          spellCheck={false}
          className="font-mono text-xs"
          value={values.args}
          onChange={(args) => change({ args })}
          problem={problem("/target/args")}
          hint="A JSON list."
        />
        <TextArea
          label="Keyword arguments"
          rows={3}
          spellCheck={false}
          className="font-mono text-xs"
          value={values.kwargs}
          onChange={(kwargs) => change({ kwargs })}
          problem={problem("/target/kwargs")}
          hint="A JSON object."
        />
      </>
    );
  },
  line: (known) => known.task,
  title: (known) => (known.queue ? `${known.task} in queue ${known.queue}` : known.task),
  details: (known) => [
    ["Arguments", known.args],
    ["Keyword arguments", known.kwargs],
  ],
  python: () => null,
  options: (known) =>
    (known.args ?? []).length > 0 || known.queue
      ? null
      : [["--celery", known.task], ...argumentOptions(known.kwargs ?? {})],
};

function argumentOptions(args: Readonly<Record<string, unknown>>): Options {
  return Object.entries(args).map(([name, value]) => ["--arg", `${name}=${argumentText(value)}`]);
}

/** An argument as text. Strings that would parse as JSON are encoded as JSON. */
function argumentText(value: unknown): string {
  if (typeof value !== "string") {
    return JSON.stringify(value);
  }
  return "value" in jsonOf(value) ? JSON.stringify(value) : value;
}

export const TARGETS: ReadonlyMap<string, TargetKind> = new Map(
  Object.entries<TargetKind>({ function: functionKind, http, event, celery }),
);
