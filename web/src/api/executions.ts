import { queryOptions } from "@tanstack/react-query";
import { api, ask } from "./client";

export function execution(id: string) {
  return queryOptions({
    queryKey: ["execution", id],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/executions/{execution_id}", { params: { path: { execution_id: id } }, signal })),
  });
}
