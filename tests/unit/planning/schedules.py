"""Schedules to plan with: a definition in a line, and times by the minute of one day."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, create, due_of
from foliot.planning.definition import CompiledSchedule, compile_spec
from foliot.planning.fire import FireDecision, Firing, plan_firing

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""A Monday."""
SCHEDULE_ID = UUID("01900000-0000-7000-8000-0000000000aa")
ANN = Author("ann", "because")
EVERY_MINUTE = {"kind": "interval", "minutes": 1}
EVERY_SECOND = {"kind": "interval", "seconds": 1}


def at(minutes: float = 0, seconds: float = 0) -> datetime:
    """So long after noon."""
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def spec_of(**fields: Any) -> ScheduleSpec:
    target = {"kind": "function", "name": "work"}
    return ScheduleSpec.parse({"name": "each", "trigger": EVERY_MINUTE, "target": target, **fields})


def created(now: datetime = NOON, **fields: Any) -> Schedule:
    """As created at noon; its first time is a minute later unless the fields say otherwise."""
    return create(
        spec_of(**fields), host_id=DEFAULT_HOST_ID, now=now, author=ANN, schedule_id=SCHEDULE_ID
    ).schedule


def cadence_of(schedule: Schedule) -> CompiledSchedule:
    return compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)


def plan(schedule: Schedule, now: datetime) -> Firing:
    return plan_firing(due_of(schedule), cadence_of(schedule), now)


def advanced(schedule: Schedule, firing: Firing) -> Schedule:
    """The schedule as the store leaves it after a firing."""
    return replace(
        schedule,
        next_fire_ts=firing.next and firing.next.fire_ts,
        next_run_ts=firing.next and firing.next.run_ts,
        run_count=schedule.run_count + firing.fires,
    )


def brief(decision: FireDecision) -> tuple[datetime, str | None, int, datetime | None]:
    return (decision.fire_ts, decision.reason, decision.missed_count, decision.missed_from_ts)


def briefs(firing: Firing) -> list[tuple[datetime, str | None, int, datetime | None]]:
    return [brief(decision) for decision in firing.decisions]
