import { useQuery } from "@tanstack/react-query";
import { type Rule, ruleList } from "@/api/notifications";
import { useWhyNot } from "@/api/session";
import type { Schedule } from "@/api/types";
import { Link } from "@/routing/Link";
import { navigate } from "@/routing/location";
import { conditionsWords, isAbout, ruleStateOf } from "@/screens/notifications/rule-words";
import { useNow } from "@/time/clock";
import { Button } from "@/ui/Button";
import { Card } from "@/ui/Card";
import { ErrorState, Skeleton } from "@/ui/State";

/** Notification rules that apply to the schedule. */
export function Told({ schedule }: { schedule: Schedule }) {
  const rules = useQuery(ruleList);
  const mayNotEdit = useWhyNot("editor");
  const found = rules.data?.filter((rule) => isAbout(rule, schedule));
  return (
    <Card
      title="Notifications"
      aside={
        <Button
          look="link"
          size="small"
          icon="plus"
          whyNot={mayNotEdit}
          onClick={() => navigate(`/notifications/rules?new=rule&about=${schedule.schedule_id}`)}
        >
          New rule
        </Button>
      }
    >
      <div className="px-4 pb-3 text-sm">
        {found === undefined ? (
          rules.error ? (
            <ErrorState error={rules.error} onRetry={() => rules.refetch()} />
          ) : (
            <Skeleton className="h-5" />
          )
        ) : found.length === 0 ? (
          <p className="text-ink-soft">No rule is about it: nobody is told when it fails.</p>
        ) : (
          <ul className="flex flex-col gap-1">
            {found.map((rule) => (
              <li key={rule.rule_id} className="flex min-w-0 flex-wrap items-baseline gap-x-2">
                <Link
                  href={`/notifications/rules?rule=${rule.rule_id}`}
                  className="text-accent max-w-full truncate rounded hover:underline"
                >
                  {rule.name}
                </Link>
                <span className="text-ink-soft text-xs">
                  {conditionsWords(rule.on)}
                  <Silence rule={rule} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

/** Mark a rule that is disabled or muted. */
function Silence({ rule }: { rule: Rule }) {
  const state = ruleStateOf(rule, useNow());
  return state === "enabled" ? null : <span className="text-warn font-medium"> — {state}</span>;
}
