"""Statements on `schedule_status_t`: the last run of each schedule."""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Insert, String, Uuid, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Columns, Dialect
from foliot.db.tables.schedules import schedule_status_t
from foliot.db.types import Instant
from foliot.model.execution import Status


class LastRun(NamedTuple):
    schedule_id: UUID
    started_ts: datetime
    status: Status
    execution_id: UUID


async def record_status(connection: AsyncConnection, dialect: Dialect, runs: Iterable[LastRun]) -> None:
    """Store the latest of these runs for each schedule, unless a later one is stored."""
    latest: dict[UUID, LastRun] = {}
    for run in runs:
        other = latest.get(run.schedule_id)
        if other is None or other.started_ts <= run.started_ts:
            latest[run.schedule_id] = run
    if not latest:
        return
    # In order of schedule_id, so that two workers never deadlock.
    runs_in_order = [run for _key, run in sorted(latest.items())]
    values: list[list[Any]] = [
        [run.schedule_id for run in runs_in_order],
        [run.started_ts for run in runs_in_order],
        [run.status.value for run in runs_in_order],
        [run.execution_id for run in runs_in_order],
    ]
    await connection.execute(_upsert(dialect), dialect.arguments("latest", _COLUMNS, values))


_COLUMNS: Columns = {
    "schedule_id": Uuid(),
    "last_run_ts": Instant(),
    "last_status": String(),
    "last_execution_id": Uuid(),
}


@lru_cache(maxsize=64)
def _upsert(dialect: Dialect) -> Insert:
    table = schedule_status_t
    new = dialect.table("latest", _COLUMNS)
    statement = dialect.insert(table).from_select(list(_COLUMNS), select(*new.c).where(true()))
    return statement.on_conflict_do_update(
        index_elements=[table.c.schedule_id],
        set_={
            "last_run_ts": statement.excluded.last_run_ts,
            "last_status": statement.excluded.last_status,
            "last_execution_id": statement.excluded.last_execution_id,
        },
        where=statement.excluded.last_run_ts >= table.c.last_run_ts,
    )
