import { useQuery } from "@tanstack/react-query";
import type { AuditRecord } from "@/api/audit";
import { schedule } from "@/api/schedules";
import { nameOfResource } from "./audit-words";

/** Name of the changed resource: its name in the record, else its current name, else its id. */
export function ResourceName({ record }: { record: AuditRecord }) {
  const told = nameOfResource(record);
  const isUnnamed = record.resource_type === "schedule" && told === record.resource_id;
  const found = useQuery({
    ...schedule(record.resource_id),
    enabled: isUnnamed,
    retry: false,
    staleTime: 60_000,
  });
  const name = record.resource_type === "session" ? "their session" : (found.data?.name ?? told);
  return (
    <span className="block truncate" title={name}>
      {name}
    </span>
  );
}
