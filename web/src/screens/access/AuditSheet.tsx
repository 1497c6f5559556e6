import { useQuery } from "@tanstack/react-query";
import { type AuditRecord, auditRecord } from "@/api/audit";
import { Link } from "@/routing/Link";
import { useZone } from "@/settings/zone";
import { fullInstant } from "@/time/format";
import { RelativeTime } from "@/time/Instant";
import { JsonView } from "@/ui/Code";
import { CopyButton } from "@/ui/Copy";
import { Sheet } from "@/ui/Dialog";
import { FactList } from "@/ui/FactList";
import { EmptyState, ErrorState, Skeleton } from "@/ui/State";
import { actionLooks, addressOfResource, typeWords } from "./audit-words";
import { DiffTable } from "./DiffTable";
import { changesBetween } from "./diff";
import { ResourceName } from "./ResourceName";

interface Props {
  id: string;
  /** The record from the list. Undefined: not in the list, so it is fetched. */
  known: AuditRecord | undefined;
  onClose: () => void;
}

/** Panel with one audit record: actor, origin, and the values before and after. */
export function AuditSheet({ id, known, onClose }: Props) {
  const found = useQuery({ ...auditRecord(id), enabled: known === undefined });
  const record = known ?? found.data;
  return (
    <Sheet
      title={record ? titleOf(record) : "What was done"}
      description={record && <ResourceName record={record} />}
      onClose={onClose}
    >
      {record ? (
        <Body record={record} />
      ) : record === null ? (
        <EmptyState icon="question" title="There is no such record">
          It is older than FOLIOT_RETENTION_DAYS, or of another host.
        </EmptyState>
      ) : found.error ? (
        <ErrorState error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <Skeleton className="h-64" />
      )}
    </Sheet>
  );
}

function titleOf(record: AuditRecord): string {
  const { verb } = actionLooks(record.action);
  const type = typeWords(record.resource_type);
  const words = record.resource_type === "session" ? verb : `${type} ${verb}`;
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function Body({ record }: { record: AuditRecord }) {
  const zone = useZone();
  const address = addressOfResource(record.resource_type, record.resource_id);
  const changes = changesBetween(record.before, record.after);
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          [
            "When",
            <span key="when">
              {fullInstant(new Date(record.audit_ts), zone)}{" "}
              <span className="text-ink-soft">
                (<RelativeTime at={record.audit_ts} />)
              </span>
            </span>,
          ],
          ["Who", record.actor ?? "nobody"],
          ["Credential", <Mono key="credential" text={record.credential} what="the credential" />],
          ["From", record.address ?? "within the cluster"],
          [
            "Action",
            <code key="action" className="font-mono text-xs">
              {record.action}
            </code>,
          ],
          [
            "Resource",
            <span key="resource" className="flex flex-wrap items-center gap-x-2">
              <Mono text={record.resource_id} what="the id" />
              {address && (
                <Link href={address} className="text-accent rounded hover:underline">
                  Show it
                </Link>
              )}
            </span>,
          ],
          ["Why", record.reason ?? <span className="text-ink-faint">no reason was given</span>],
          ["Request", <Mono key="request" text={record.request_id} what="the request's id" />],
        ]}
      />
      {changes.length > 0 && (
        <section className="flex flex-col gap-2">
          <h3 className="font-semibold">
            {record.before === null ? "As it was made" : record.after === null ? "As it was" : "What changed"}
          </h3>
          <DiffTable changes={changes} />
        </section>
      )}
      {changes.length > 0 && (
        <details>
          <summary className="text-ink-soft hover:text-ink rounded text-sm">As the server keeps it</summary>
          <div className="mt-2 flex flex-col gap-2">
            <JsonView value={{ before: record.before, after: record.after }} what="before and after" />
          </div>
        </details>
      )}
    </div>
  );
}

function Mono({ text, what }: { text: string | null; what: string }) {
  if (!text) {
    return <span className="text-ink-faint">none</span>;
  }
  return (
    <span className="inline-flex items-center gap-1 font-mono text-xs break-all">
      {text}
      <CopyButton text={text} what={what} className="-my-2" />
    </span>
  );
}
