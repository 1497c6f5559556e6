import { useCallback } from "react";
import { SCHEDULE_STATES, STATUSES } from "@/api/types";
import { kindChoices, useKinds } from "@/kinds";
import { Facet, FilterBar, FilterChip, SearchBox, SortMenu, words } from "@/ui/Filters";
import { isFiltered, OWNERS, PRIORITIES, type Search, UNFILTERED } from "./filters";

/** Statuses that a last run can have, including "retrying". */
const RESULTS = STATUSES.filter(
  (status) => status !== "pending" && status !== "running" && status !== "skipped",
);

const ORDERS: readonly { value: Search["sort"]; label: string }[] = [
  { value: "name", label: "Name" },
  { value: "next_run_ts", label: "Next run" },
  { value: "-last_run_ts", label: "Latest run" },
  { value: "-updated_ts", label: "Latest change" },
  { value: "-created_ts", label: "Newest" },
];

interface Props {
  search: Search;
  onChange: (changes: Partial<Search>, options?: { replace?: boolean }) => void;
}

export function ScheduleFilters({ search, onChange }: Props) {
  const kinds = useKinds();
  const find = useCallback((q: string) => onChange({ q }, { replace: true }), [onChange]);
  return (
    <FilterBar
      label="Filter schedules"
      search={<SearchBox label="Name or description" value={search.q} onChange={find} />}
      onClear={isFiltered(search) ? () => onChange(UNFILTERED) : null}
    >
      <SortMenu value={search.sort} choices={ORDERS} onChange={(sort) => onChange({ sort })} />
      <Facet
        label="State"
        choices={words(SCHEDULE_STATES)}
        chosen={search.state}
        onChange={(state) => onChange({ state })}
      />
      <Facet
        label="Last result"
        choices={words(RESULTS)}
        chosen={search.last_status}
        onChange={(last_status) => onChange({ last_status })}
      />
      <Facet
        label="Target"
        choices={kindChoices("target", kinds, search.target)}
        chosen={search.target}
        onChange={(target) => onChange({ target })}
      />
      <Facet
        label="Owner"
        choices={words(OWNERS)}
        chosen={search.managed_by}
        onChange={(managed_by) => onChange({ managed_by })}
      />
      <Facet
        label="Priority"
        choices={words(PRIORITIES)}
        chosen={search.priority}
        onChange={(priority) => onChange({ priority })}
      />
      {(["queue", "label", "calendar"] as const).flatMap((name) =>
        search[name].map((value) => (
          <FilterChip
            key={`${name} ${value}`}
            label={`${name} ${value}`}
            onRemove={() => onChange({ [name]: search[name].filter((each) => each !== value) })}
          />
        )),
      )}
    </FilterBar>
  );
}
