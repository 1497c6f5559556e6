import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { tellExecution, withTold } from "./execution-list";
import type { ExecutionTold } from "./stream";
import type { Execution } from "./types";

const row = (execution_id: string) => ({ execution_id, status: "running", queue: "mail" }) as Execution;

const TOLD: ExecutionTold = {
  execution_id: "b",
  schedule_id: "s",
  schedule_name: "nightly",
  status: "success",
  attempt: 1,
  progress: null,
  fire_ts: "2026-01-01T00:00:00Z",
  started_ts: "2026-01-01T00:00:00Z",
  ended_ts: "2026-01-01T00:00:02Z",
  duration_seconds: 2,
};

test("how an execution ended once is forgotten when it stands otherwise", () => {
  const known = { ...row("b"), status: "retrying", error: "no answer" } as Execution;
  expect(withTold(known, TOLD)).toMatchObject({ status: "success", error: null });
  const same = { ...known, status: "success", attempt: 1 } as Execution;
  expect(withTold(same, TOLD)).toMatchObject({ error: "no answer" });
});

test("what the stream tells is put into every list that has it, and into nothing else", () => {
  const client = new QueryClient();
  const page = (...ids: string[]) => ({ items: ids.map(row), next_page_token: "" });
  client.setQueryData(["executions", "list", {}], { pages: [page("a"), page("b")], pageParams: ["", "x"] });
  client.setQueryData(["execution", "b"], row("b"));
  tellExecution(client, TOLD);
  const list = client.getQueryData<{ pages: { items: Execution[] }[] }>(["executions", "list", {}]);
  expect(list?.pages.flatMap(({ items }) => items.map(({ status }) => status))).toEqual([
    "running",
    "success",
  ]);
  expect(client.getQueryData(["execution", "b"])).toMatchObject({ status: "success", queue: "mail" });
  expect(client.getQueryData(["execution", "a"])).toBeUndefined();
});
