import { covers, useMe, useSignOut } from "@/api/session";
import type { Me as Known } from "@/api/types";
import { serverUrl } from "@/routing/base";
import { Button } from "@/ui/Button";
import { Card } from "@/ui/Card";
import { CodeBlock } from "@/ui/Code";
import { FactList } from "@/ui/FactList";
import { Icon } from "@/ui/Icon";
import { RoleBadge } from "./parts";
import { ABILITIES } from "./roles";

const KIND_WORDS: Record<Known["kind"], string> = {
  key: "an API key",
  jwt: "a JSON Web Token",
  session: "a browser that has signed in",
  operator: "the operator's own key",
};

/** The signed-in user: identity, role, and permissions. */
export function Me() {
  const known = useMe();
  const signOut = useSignOut();
  if (known === null) return null;
  const commands = `export FOLIOT_URL=${serverUrl()}\nexport FOLIOT_KEY=…\nfoliot schedule list`;
  return (
    <div className="grid items-start gap-4 lg:grid-cols-2">
      <Card
        title="Signed in as"
        aside={
          <Button size="small" icon="leave" isBusy={signOut.isPending} onClick={() => signOut.mutate()}>
            Sign out
          </Button>
        }
      >
        <div className="px-4 pt-1 pb-4">
          <FactList
            facts={[
              ["Name", known.name],
              ["Role", <RoleBadge key="role" role={known.role} />],
              ["By", known.is_operator ? "the operator's own key, FOLIOT_ADMIN_KEY" : KIND_WORDS[known.kind]],
              [
                "Credential",
                <code key="credential" className="font-mono text-xs break-all">
                  {known.credential}
                </code>,
              ],
              [
                "Host",
                <code key="host" className="font-mono text-xs break-all">
                  {known.host_id}
                </code>,
              ],
            ]}
          />
          <p className="text-ink-soft mt-3 text-xs">
            The audit names what you do by this name and credential.
          </p>
        </div>
      </Card>
      <Card title="What you may do" className="lg:row-span-2">
        <ul className="flex flex-col gap-1.5 px-4 pt-1 pb-4 text-sm">
          {ABILITIES.map(([what, needed]) => {
            const may = needed === "operator's key" ? known.is_operator : covers(known.role, needed);
            return (
              <li key={what} className="flex items-start gap-2">
                <Icon
                  name={may ? "checkCircle" : "stop"}
                  size={15}
                  className={`mt-0.5 ${may ? "text-good" : "text-ink-faint"}`}
                />
                <span className="sr-only">{may ? "May:" : "May not:"}</span>
                <span className={`min-w-0 ${may ? "" : "text-ink-soft"}`}>{what}</span>
                <span className="text-ink-soft ml-auto shrink-0 text-xs leading-5">{needed}</span>
              </li>
            );
          })}
        </ul>
      </Card>
      <Card title="On the command line">
        <div className="flex flex-col gap-2 px-4 pt-1 pb-4">
          <p className="text-ink-soft text-sm">With a key of your own, made by an admin:</p>
          <CodeBlock code={commands} what="the commands" />
        </div>
      </Card>
    </div>
  );
}
