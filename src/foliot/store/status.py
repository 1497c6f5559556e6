"""Statements on `schedule_status_t`: how the last run of each schedule went."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import String, Uuid, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.execution import Status
from foliot.store.dialect import Dialect
from foliot.store.schema import schedule_status_t
from foliot.store.types import Instant


class LastRun(NamedTuple):
    schedule_id: UUID
    started_ts: datetime
    status: Status
    execution_id: UUID


async def record_status(connection: AsyncConnection, dialect: Dialect, runs: Iterable[LastRun]) -> None:
    """Keep the latest of these runs for each schedule, unless a later one is known."""
    latest: dict[UUID, LastRun] = {}
    for run in runs:
        other = latest.get(run.schedule_id)
        if other is None or other.started_ts <= run.started_ts:
            latest[run.schedule_id] = run
    if not latest:
        return
    # In the order of schedule_id, so that two workers never wait for each other in a circle.
    new = dialect.rows(
        "new",
        {
            "schedule_id": Uuid(),
            "last_run_ts": Instant(),
            "last_status": String(),
            "last_execution_id": Uuid(),
        },
        [(key, run.started_ts, run.status.value, run.execution_id) for key, run in sorted(latest.items())],
    )
    statement = dialect.insert(schedule_status_t).from_select(
        ["schedule_id", "last_run_ts", "last_status", "last_execution_id"],
        select(*new.c).where(true()),
    )
    table = schedule_status_t
    await connection.execute(
        statement.on_conflict_do_update(
            index_elements=[table.c.schedule_id],
            set_={
                "last_run_ts": statement.excluded.last_run_ts,
                "last_status": statement.excluded.last_status,
                "last_execution_id": statement.excluded.last_execution_id,
            },
            where=statement.excluded.last_run_ts >= table.c.last_run_ts,
        )
    )
