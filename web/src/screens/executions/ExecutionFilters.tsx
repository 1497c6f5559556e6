import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { TRIGGERED_BY } from "@/api/execution-list";
import { schedule } from "@/api/schedules";
import { clusterStatus } from "@/api/status";
import { STATUSES } from "@/api/types";
import { Facet, FilterBar, FilterChip, words } from "@/ui/Filters";
import { Icon } from "@/ui/Icon";
import { FireRange } from "./FireRange";
import { isFiltered, type Search, UNFILTERED } from "./filters";
import { SchedulePicker } from "./SchedulePicker";

interface Props {
  search: Search;
  onChange: (changes: Partial<Search>) => void;
}

export function ExecutionFilters({ search, onChange }: Props) {
  const [isPicking, setPicking] = useState(false);
  const status = useQuery(clusterStatus);
  const queues = [...new Set([...(status.data?.queues ?? []).map((queue) => queue.name), ...search.queue])];
  return (
    <>
      <FilterBar
        label="Filter executions"
        search={
          <button
            type="button"
            aria-haspopup="dialog"
            onClick={() => setPicking(true)}
            className="border-control bg-surface text-ink-faint hover:bg-hover shadow-low flex h-8 min-w-0 items-center gap-2 rounded-md border px-2.5 text-sm sm:w-48"
          >
            <Icon name="search" size={14} />
            {search.schedule_id.length === 0 ? "Any schedule" : "Another schedule"}
          </button>
        }
        onClear={isFiltered(search) ? () => onChange(UNFILTERED) : null}
      >
        <Facet
          label="Status"
          choices={words(STATUSES)}
          chosen={search.status}
          onChange={(chosen) => onChange({ status: chosen })}
        />
        <Facet
          label="Set off by"
          choices={words(TRIGGERED_BY)}
          chosen={search.triggered_by}
          onChange={(triggered_by) => onChange({ triggered_by })}
        />
        <Facet
          label="Queue"
          choices={words(queues)}
          chosen={search.queue}
          onChange={(queue) => onChange({ queue })}
        />
        <FireRange from={search.fire_from} to={search.fire_to} onChange={onChange} />
        {search.schedule_id.map((id) => (
          <ScheduleChip
            key={id}
            id={id}
            onRemove={() => onChange({ schedule_id: search.schedule_id.filter((each) => each !== id) })}
          />
        ))}
      </FilterBar>
      <SchedulePicker
        isOpen={isPicking}
        onOpenChange={setPicking}
        onPick={(id) => onChange({ schedule_id: [...new Set([...search.schedule_id, id])] })}
      />
    </>
  );
}

function ScheduleChip({ id, onRemove }: { id: string; onRemove: () => void }) {
  const known = useQuery({ ...schedule(id), staleTime: 60_000, retry: false });
  return <FilterChip label={known.data?.name ?? `schedule ${id.slice(0, 8)}…`} onRemove={onRemove} />;
}
