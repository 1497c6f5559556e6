"""Statements on `attempt_t`: every attempt that did not succeed, whichever process saw it end."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Float, Integer, String, Text, Uuid, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Columns, Dialect
from foliot.db.tables.executions import attempt_t
from foliot.db.types import Instant
from foliot.model.execution import Status


class EndedAttempt(NamedTuple):
    execution_id: UUID
    attempt: int
    status: Status
    worker_id: str | None
    started_ts: datetime | None
    error: str | None
    duration_seconds: float | None = None
    traceback: str | None = None


_COLUMNS: Columns = {
    "execution_id": Uuid(),
    "attempt": Integer(),
    "status": String(),
    "worker_id": String(),
    "started_ts": Instant(),
    "error": Text(),
    "duration_seconds": Float(),
    "traceback": Text(),
}


async def record_attempts(
    connection: AsyncConnection, dialect: Dialect, attempts: Sequence[EndedAttempt]
) -> None:
    """Insert these attempts as ended now. A row that exists already stays unchanged."""
    if not attempts:
        return
    new = dialect.rows("new", _COLUMNS, attempts)
    source = select(*new.c, dialect.now()).where(true())
    await connection.execute(
        dialect.insert(attempt_t).from_select([*_COLUMNS, "ended_ts"], source).on_conflict_do_nothing()
    )
