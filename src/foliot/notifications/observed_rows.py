"""Rows that the notifier reads: schedules with their current state, and runs."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import FromClause, Select, Uuid, select

from foliot.db.dialect import Dialect
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import Status, TriggeredBy
from foliot.model.incident import Run, Subject
from foliot.model.schedule import ScheduleState

_SUBJECT = (
    "schedule_id",
    "host_id",
    "schedule_name",
    "labels",
    "paused",
    "paused_until_ts",
    "deleted_ts",
    "active",
    "state",
)
_RUN = (
    "execution_id",
    "status",
    "attempt",
    "triggered_by",
    "fire_ts",
    "started_ts",
    "ended_ts",
    "due_by_ts",
    "error",
)


class ObservedExecution(NamedTuple):
    """An execution, and the current state of its schedule."""

    subject: Subject
    run: Run


def select_seen(*more: Any) -> Select[Any]:
    """Select executions with their schedules. With `more` columns, the caller adds the FROM clause."""
    statement = select(
        *(schedule_t.c[name] for name in _SUBJECT), *(execution_t.c[name] for name in _RUN), *more
    )
    if more:
        return statement
    return statement.select_from(
        execution_t.join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
    )


def seen_of(row: Any, now: datetime) -> ObservedExecution:
    return ObservedExecution(subject_of(row, now), run_of(row))


def subject_of(row: Any, now: datetime) -> Subject:
    # A pause with an end is over then, even if the row still says paused.
    is_paused = row.paused and (row.paused_until_ts is None or row.paused_until_ts > now)
    return Subject(
        row.schedule_id,
        row.host_id,
        row.schedule_name,
        row.labels,
        is_paused,
        row.deleted_ts is not None,
        row.active,
        row.state == ScheduleState.COMPLETED.value,
    )


def run_of(row: Any) -> Run:
    return Run(
        row.execution_id,
        Status(row.status),
        row.attempt,
        TriggeredBy(row.triggered_by),
        row.fire_ts,
        row.started_ts,
        row.ended_ts,
        row.due_by_ts,
        row.error,
    )


def wanted_schedules(dialect: Dialect, schedule_ids: Collection[UUID]) -> FromClause:
    return dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])


def wanted_executions(dialect: Dialect, execution_ids: Collection[UUID]) -> Select[Any]:
    """Select these executions, if they exist, with their schedules."""
    given = dialect.rows("given", {"execution_id": Uuid()}, [(each,) for each in execution_ids])
    return select_seen().where(execution_t.c.execution_id.in_(select(given.c.execution_id)))
