"""Convert rows of `execution_t` and its related tables to values."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import Select, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.rows.from_row import from_row
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import NotFoundError
from foliot.model.execution import AttemptRecord, Execution, LoggedLine, Status, TriggeredBy
from foliot.model.policy import priority_from
from foliot.model.schedule import Schedule
from foliot.model.trace import trace_id_text


@cache
def select_executions() -> Select[Any]:
    """Select rows that `execution_of` can convert."""
    return select(execution_t, schedule_t.c.schedule_name).outerjoin(
        schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id
    )


@cache
def _one() -> Select[Any]:
    """Select one execution by id. Cached, since building the statement takes longer than running it."""
    return select_executions().where(execution_t.c.execution_id == bindparam("wanted_execution"))


async def read_execution(
    connection: AsyncConnection, execution_id: UUID, *, host_id: UUID | None = None
) -> Execution:
    """Return an execution. Raises NotFoundError, also for an execution of another host."""
    row = (await connection.execute(_one(), {"wanted_execution": execution_id})).one_or_none()
    if row is None or (host_id is not None and row.host_id != host_id):
        raise NotFoundError("execution", execution_id)
    return execution_of(row)


def execution_of(row: Any) -> Execution:
    return from_row(
        Execution,
        row,
        status=Status(row.status),
        triggered_by=TriggeredBy(row.triggered_by),
        priority=priority_from(row.priority),
        trace_id=trace_id_text(row.execution_id, row.trace_context),
    )


_UNWRITTEN = {
    **{column.name: None for column in execution_t.columns},
    "missed_count": 0,
    "attempt": 0,
    "cancel_requested": False,
    "is_remote": False,
}


def requested_execution(
    schedule: Schedule,
    execution_id: UUID,
    fire_ts: datetime,
    *,
    by: TriggeredBy,
    user: str | None,
    now: datetime,
    is_ready: bool,
) -> dict[str, Any]:
    """Return the row of an execution that somebody asked for. An event ends when it is written."""
    is_event = schedule.spec.target.is_event
    return {
        "execution_id": execution_id,
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "aggregate_version": schedule.aggregate_version,
        "fire_ts": fire_ts,
        "status": (Status.SUCCESS if is_event else Status.PENDING).value,
        "triggered_by": by.value,
        "triggered_by_user": user,
        "queue": schedule.spec.queue,
        "priority": schedule.spec.priority.value,
        "ready_ts": now if is_ready else None,
        "due_by_ts": now + timedelta(seconds=schedule.spec.priority.sla_s) if is_ready else None,
        "created_ts": now,
        **({"started_ts": now, "ended_ts": now, "duration_seconds": 0.0, "attempt": 1} if is_event else {}),
    }


def execution_as_written(values: Mapping[str, Any], schedule_name: str) -> Execution:
    """Return the execution that a row written with these values would be read as."""
    return execution_of(SimpleNamespace(**_UNWRITTEN | dict(values), schedule_name=schedule_name))


def attempt_of(row: Any) -> AttemptRecord:
    return from_row(AttemptRecord, row, status=Status(row.status))


def line_of(row: Any) -> LoggedLine:
    return LoggedLine(row.attempt, row.line, row.logged_ts, row.level, row.logger, row.message)
