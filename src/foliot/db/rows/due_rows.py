"""Read due schedules: the columns that planning needs, and the conversion of a row to a `Due`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Text, cast

from foliot.db.tables.schedules import schedule_t
from foliot.model.policy import Priority, priority_from
from foliot.planning.definition import FiringDefinition
from foliot.planning.fire import Due

DUE_COLUMNS = (
    schedule_t.c.schedule_id,
    schedule_t.c.host_id,
    schedule_t.c.aggregate_version,
    schedule_t.c.next_fire_ts,
    schedule_t.c.next_run_ts,
    schedule_t.c.run_count,
    # As text, so that equal definitions are recognised without parsing.
    cast(schedule_t.c.trigger, Text).label("trigger_text"),
    cast(schedule_t.c.policies, Text).label("policies_text"),
    schedule_t.c.start_ts,
    schedule_t.c.effective_ts,
    schedule_t.c.end_ts,
    schedule_t.c.max_runs,
    schedule_t.c.queue,
    schedule_t.c.priority,
    (schedule_t.c.target["kind"].as_string() == "event").label("is_event"),
)


def due_of(row: Any, shared: dict[Any, Any]) -> Due:
    """Build a `Due` from a row. `shared` deduplicates equal values: thousands of schedules share few."""
    priority = priority_from(row.priority)
    definition = FiringDefinition(
        trigger=shared.setdefault(row.trigger_text, row.trigger_text),
        policies=shared.setdefault(row.policies_text, row.policies_text),
        anchor_ts=row.start_ts or row.effective_ts,
        effective_ts=row.effective_ts,
        end_ts=row.end_ts,
        max_runs=row.max_runs,
        queue=shared.setdefault(row.queue, row.queue),
        priority=priority,
        is_event=bool(row.is_event),
        unknown_priority=None if row.priority == priority else row.priority,
    )
    return Due(
        schedule_id=row.schedule_id,
        host_id=shared.setdefault(row.host_id, row.host_id),
        aggregate_version=row.aggregate_version,
        fire_ts=row.next_fire_ts,
        run_ts=row.next_run_ts,
        run_count=row.run_count,
        definition=definition,
    )


@dataclass(frozen=True, slots=True)
class LoadPosition:
    """Cursor of a paged load: the last schedule of the previous page."""

    run_ts: datetime
    schedule_id: UUID


class LoadRange(NamedTuple):
    """A range to load: the schedules of one host and priority, from an instant on."""

    host_id: UUID
    priority: Priority
    from_ts: datetime
