"""Reads the history of one schedule: its decided fire times, and its versions.

With a `host_id`, schedules of other hosts are not found. A deleted schedule keeps its history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.rows.from_row import from_row
from foliot.db.statements import Statements
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.errors import NotFoundError
from foliot.model.execution import Status
from foliot.model.schedule import ChangeKind

# Literal SQL text, so that PostgreSQL uses the partial index also for a prepared statement.
_IS_SCHEDULED = text("triggered_by = 'scheduler'")


@dataclass(frozen=True, slots=True)
class PastFire:
    """One row of the ledger. It decides its own fire time and the `missed_count` times right before it."""

    execution_id: UUID
    fire_ts: datetime
    status: Status
    reason: str | None
    missed_count: int
    missed_from_ts: datetime | None
    aggregate_version: int
    started_ts: datetime | None
    duration_seconds: float | None

    @property
    def is_skipped(self) -> bool:
        return self.status is Status.SKIPPED


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """A version of a schedule: author, reason and full definition."""

    aggregate_version: int
    change: ChangeKind
    author: str | None
    reason: str | None
    created_ts: datetime
    document: dict[str, Any]
    paused: bool
    paused_until_ts: datetime | None


class ExecutionHistory(Statements):
    async def ledger(
        self,
        schedule_id: UUID,
        *,
        host_id: UUID | None = None,
        from_ts: datetime | None = None,
        to_ts: datetime | None = None,
        before_ts: datetime | None = None,
        n: int = 50,
    ) -> list[PastFire]:
        """Return the scheduler's rows that decided the times in [from_ts, to_ts), latest first.

        Includes the row after the range if the missed times that it decides begin before `to_ts`. `before_ts`
        is the fire time of the last row of the previous page.
        """
        rows = select(*_COLUMNS).where(execution_t.c.schedule_id == schedule_id, _IS_SCHEDULED)
        page = rows.order_by(execution_t.c.fire_ts.desc()).limit(n)
        if from_ts is not None:
            page = page.where(execution_t.c.fire_ts >= from_ts)
        ends = [each for each in (to_ts, before_ts) if each is not None]
        if ends:
            page = page.where(execution_t.c.fire_ts < min(ends))
        async with self._database.read(Pool.API) as connection:
            await _require(connection, schedule_id, host_id)
            found = (await connection.execute(page)).all()
            later: Sequence[Any] = ()
            if to_ts is not None and before_ts is None:
                later = (await connection.execute(_reaching_before(rows, to_ts))).all()
        return [_past_fire_of(row) for row in (*later, *found)][:n]

    async def versions(
        self,
        schedule_id: UUID,
        *,
        host_id: UUID | None = None,
        before_version: int | None = None,
        limit: int = 50,
    ) -> list[VersionRecord]:
        """Return a page of versions, latest first. `before_version` is the last of the previous page."""
        statement = (
            _select_versions(schedule_id).order_by(schedule_version_t.c.aggregate_version.desc()).limit(limit)
        )
        if before_version is not None:
            statement = statement.where(schedule_version_t.c.aggregate_version < before_version)
        async with self._database.read(Pool.API) as connection:
            await _require(connection, schedule_id, host_id)
            return [_version_of(row) for row in await connection.execute(statement)]

    async def version(
        self, schedule_id: UUID, aggregate_version: int, *, host_id: UUID | None = None
    ) -> VersionRecord:
        """Return one version. Raises NotFoundError."""
        statement = _select_versions(schedule_id).where(
            schedule_version_t.c.aggregate_version == aggregate_version
        )
        async with self._database.read(Pool.API) as connection:
            await _require(connection, schedule_id, host_id)
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFoundError("version", f"{aggregate_version} of schedule {schedule_id}")
        return _version_of(row)


_COLUMNS = tuple(
    execution_t.c[name]
    for name in (
        "execution_id",
        "fire_ts",
        "status",
        "reason",
        "missed_count",
        "missed_from_ts",
        "aggregate_version",
        "started_ts",
        "duration_seconds",
    )
)


async def _require(connection: AsyncConnection, schedule_id: UUID, host_id: UUID | None) -> None:
    """Raise NotFoundError if there is no such schedule, or if it belongs to another host."""
    statement = select(schedule_t.c.host_id).where(schedule_t.c.schedule_id == schedule_id)
    owner = (await connection.execute(statement)).scalar_one_or_none()
    if owner is None or (host_id is not None and owner != host_id):
        raise NotFoundError("schedule", schedule_id)


def _reaching_before(rows: Select[Any], to_ts: datetime) -> Select[Any]:
    """Select the first row at or after `to_ts`, if the missed times that it decides begin before `to_ts`.

    The missed times of a row all lie after the previous row, so no other row can reach that far back.
    """
    first = rows.where(execution_t.c.fire_ts >= to_ts).order_by(execution_t.c.fire_ts).limit(1).subquery()
    return select(first).where(first.c.missed_from_ts < to_ts)


def _select_versions(schedule_id: UUID) -> Select[Any]:
    return select(schedule_version_t).where(schedule_version_t.c.schedule_id == schedule_id)


def _past_fire_of(row: Any) -> PastFire:
    return from_row(PastFire, row, status=Status(row.status))


def _version_of(row: Any) -> VersionRecord:
    return from_row(VersionRecord, row, change=ChangeKind(row.change))
