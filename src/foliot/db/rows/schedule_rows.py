"""Converts a schedule to a row of `schedule_t`, and back."""

from typing import Any, Literal
from uuid import UUID

from pydantic import ValidationError

from foliot.db.rows.from_row import from_row
from foliot.model.errors import UnreadableError
from foliot.model.schedule import (
    ManagedBy,
    Schedule,
    ScheduleSpec,
    ScheduleState,
    problems_of,
    stored_document,
)
from foliot.planning.definition import POLICY_FIELDS, policies_of


def row_of(schedule: Schedule) -> dict[str, Any]:
    spec = schedule.spec
    return {
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "schedule_name": spec.name,
        "description": spec.description,
        "labels": dict(spec.labels),
        "trigger": spec.trigger.model_dump(mode="json"),
        "target": spec.target.model_dump(mode="json"),
        "policies": stored_document(policies_of(spec)),
        "start_ts": spec.start_ts,
        "end_ts": spec.end_ts,
        "max_runs": spec.max_runs,
        "run_count": schedule.run_count,
        "effective_ts": schedule.effective_ts,
        "next_fire_ts": schedule.next_fire_ts,
        "next_run_ts": schedule.next_run_ts,
        "priority": spec.priority.value,
        "queue": spec.queue,
        "timeout_seconds": spec.timeout_seconds,
        "active": spec.active,
        "paused": schedule.paused,
        "paused_until_ts": schedule.paused_until_ts,
        "pause_reason": schedule.pause_reason,
        "state": schedule.state.value,
        "state_reason": schedule.state_reason,
        "slot": schedule.slot,
        "managed_by": schedule.managed_by.value,
        "managed_source": schedule.managed_source,
        "aggregate_version": schedule.aggregate_version,
        "created_by": schedule.created_by,
        "created_ts": schedule.created_ts,
        "updated_by": schedule.updated_by,
        "updated_ts": schedule.updated_ts,
        "deleted_ts": schedule.deleted_ts,
    }


MAX_REMEMBERED = 5_000
_specs: dict[tuple[UUID, int], ScheduleSpec] = {}
"""Cache by version: a version never changes, and parsing takes longer than all else done with a row."""


def _spec_of(row: Any, *, to_change: bool) -> ScheduleSpec:
    """Parse the definition. With fields that only a newer version knows, it can be read but not changed."""
    version = (row.schedule_id, row.aggregate_version)
    known = _specs.get(version)
    if known is None:
        if len(_specs) >= MAX_REMEMBERED:
            _specs.clear()
        try:
            known = _specs[version] = _read_spec(row)
        except ValidationError:
            if to_change:
                raise
            return _read_spec(row, extra="ignore")
    return known


def _read_spec(row: Any, extra: Literal["ignore"] | None = None) -> ScheduleSpec:
    return ScheduleSpec.model_validate(
        {
            "name": row.schedule_name,
            "description": row.description,
            "active": row.active,
            "priority": row.priority,
            "queue": row.queue,
            "trigger": row.trigger,
            "target": row.target,
            "start_ts": row.start_ts,
            "end_ts": row.end_ts,
            "max_runs": row.max_runs,
            "timeout_seconds": row.timeout_seconds,
            "labels": row.labels,
            **_policies_in(row.policies, knows_all=extra is None),
        },
        extra=extra,
    )


def _policies_in(stored: dict[str, Any], *, knows_all: bool) -> dict[str, Any]:
    if knows_all:
        return stored
    return {name: stored[name] for name in POLICY_FIELDS if name in stored}


def schedule_of(row: Any, *, to_change: bool = False) -> Schedule:
    """Parse a row. Raises UnreadableError if only a newer version can read it."""
    try:
        return _schedule_of(row, _spec_of(row, to_change=to_change))
    except ValidationError as error:
        reason = "; ".join(str(problem) for problem in problems_of(error))
    except ValueError as error:
        reason = str(error)
    raise UnreadableError(row.schedule_id, reason)


def _schedule_of(row: Any, spec: ScheduleSpec) -> Schedule:
    return from_row(
        Schedule, row, spec=spec, state=ScheduleState(row.state), managed_by=ManagedBy(row.managed_by)
    )
