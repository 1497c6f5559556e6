"""Statistics of single schedules, from their latest executions. These are found by index, never by a scan.

`execution_t` has three partial indexes by schedule and fire time: for executions of the scheduler, of
backfills, and of manual triggers. The latest executions of a schedule are the latest of the three.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Uuid,
    and_,
    func,
    literal,
    select,
    text,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect, Pool
from foliot.db.statements import Statements
from foliot.db.tables.executions import IS_BY_HAND, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import NotFoundError
from foliot.model.execution import Status
from foliot.model.instant import EPOCH

MAX_EXECUTIONS = 2_000
MAX_IN_DAYS = 25_000
"""Max executions of each kind that are counted by day: twelve weeks with one every five minutes."""
REACH = timedelta(weeks=12)
LAST = 20

_DAY_US = 86_400_000_000

# Literal SQL text, so that PostgreSQL uses the partial indexes also for a prepared statement.
_KINDS = ("triggered_by = 'scheduler'", "triggered_by = 'backfill'", IS_BY_HAND)


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """Percentiles and maximum of durations, in seconds."""

    p50_s: float
    p95_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class DayCounts:
    day: date
    """In UTC."""
    by_status: Mapping[Status, int]


@dataclass(frozen=True, slots=True)
class RecentExecution:
    execution_id: UUID
    status: Status
    fire_ts: datetime
    duration_seconds: float | None


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    by_status: Mapping[Status, int]
    duration: DurationSummary | None
    """Of the last attempts. None: nothing has run."""
    start_delay: DurationSummary | None
    """Time from ready to started."""
    last: Sequence[RecentExecution]
    """Latest first."""
    since_ts: datetime
    """The fields above cover fire times from here on."""
    days: Sequence[DayCounts]
    """Days with executions, oldest first."""
    days_since_ts: datetime
    """`days` covers fire times from here on."""


class Statistics(Statements):
    async def of_schedule(self, schedule_id: UUID, *, host_id: UUID | None = None) -> ScheduleStatistics:
        """Return statistics of the latest executions in the last twelve weeks. Raises NotFoundError."""
        async with self._database.read(Pool.API) as connection:
            now = await self._now_of(connection, schedule_id, host_id)
            is_near = execution_t.c.fire_ts >= now - REACH
            rows = (await connection.execute(_latest(schedule_id, MAX_EXECUTIONS, is_near))).all()
            by_day = (await connection.execute(_by_day(self._dialect, schedule_id, is_near))).all()
        days, days_since_ts = _days_of(by_day, now - REACH)
        return ScheduleStatistics(
            by_status=dict(Counter(Status(row.status) for row in rows)),
            duration=_spread(row.duration_seconds for row in rows),
            start_delay=_spread(_start_delay_s(row) for row in rows),
            last=[_recent_of(row) for row in rows[:LAST]],
            since_ts=rows[-1].fire_ts if len(rows) == MAX_EXECUTIONS else now - REACH,
            days=days,
            days_since_ts=days_since_ts,
        )

    async def recent(
        self, schedule_ids: Sequence[UUID], *, n: int = LAST
    ) -> dict[UUID, list[RecentExecution]]:
        """Return the latest `n` executions of many schedules, latest first. Omits schedules without any."""
        if not schedule_ids:
            return {}
        rows = (await self._database.fetch(Pool.API, _latest_of_each(self._dialect, schedule_ids, n))).all()
        found: dict[UUID, list[Any]] = {}
        for row in rows:
            found.setdefault(row.schedule_id, []).append(row)
        return {
            schedule_id: [_recent_of(row) for row in sorted(some, key=_place, reverse=True)[:n]]
            for schedule_id, some in found.items()
        }

    async def _now_of(self, connection: AsyncConnection, schedule_id: UUID, host_id: UUID | None) -> datetime:
        statement = select(schedule_t.c.host_id, self._dialect.now().label("store_now")).where(
            schedule_t.c.schedule_id == schedule_id
        )
        row = (await connection.execute(statement)).one_or_none()
        if row is None or (host_id is not None and row.host_id != host_id):
            raise NotFoundError("schedule", schedule_id)
        now: datetime = row.store_now
        return now


# --- statements -----------------------------------------------------------------------------------------

_COLUMNS = tuple(
    execution_t.c[name]
    for name in (
        "execution_id",
        "schedule_id",
        "status",
        "fire_ts",
        "ready_ts",
        "started_ts",
        "duration_seconds",
    )
)


def _latest(schedule_id: UUID, limit: int, *conditions: ColumnElement[bool]) -> Select[Any]:
    """Select the latest executions of one schedule."""
    merged = union_all(
        *(_latest_of(kind, _COLUMNS, schedule_id, limit, *conditions) for kind in _KINDS)
    ).subquery()
    return select(merged).order_by(merged.c.fire_ts.desc(), merged.c.execution_id.desc()).limit(limit)


def _latest_of(
    kind: str, columns: Sequence[Any], schedule_id: UUID, limit: int, *conditions: ColumnElement[bool]
) -> Select[Any]:
    return select(
        select(*columns)
        .where(execution_t.c.schedule_id == schedule_id, text(kind), *conditions)
        .order_by(execution_t.c.fire_ts.desc())
        .limit(limit)
        .subquery()
    )


def _by_day(dialect: Dialect, schedule_id: UUID, *conditions: ColumnElement[bool]) -> Any:
    """Count executions by kind, day and status, with the first fire time of each."""
    counted = []
    for kind in _KINDS:
        columns = (execution_t.c.fire_ts, execution_t.c.status)
        some = _latest_of(kind, columns, schedule_id, MAX_IN_DAYS, *conditions).subquery()
        day = (dialect.micros(some.c.fire_ts) // literal(_DAY_US, BigInteger)).label("day")
        some = select(day, some.c.status, some.c.fire_ts).subquery()
        counted.append(
            select(
                literal(kind).label("kind"),
                some.c.day,
                some.c.status,
                func.count().label("amount"),
                func.min(some.c.fire_ts).label("first_ts"),
            ).group_by(some.c.day, some.c.status)
        )
    return union_all(*counted)


def _latest_of_each(dialect: Dialect, schedule_ids: Sequence[UUID], n: int) -> Any:
    """Select the latest executions of each kind of each schedule: at least `n`, if there are so many."""
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    return union_all(*(_steps_back(kind, number, wanted, n) for number, kind in enumerate(_KINDS)))


def _steps_back(kind: str, number: int, wanted: Any, n: int) -> Select[Any]:
    """Step from a schedule's latest fire time to the one before, and so on. Each step is one index lookup.

    PostgreSQL could use LATERAL, but SQLite has none. A UNION of limited selects would take longer to plan
    than to run.
    """
    is_kind = text(kind)
    latest = select(func.max(execution_t.c.fire_ts)).where(
        execution_t.c.schedule_id == wanted.c.schedule_id, is_kind
    )
    steps = select(
        wanted.c.schedule_id, literal(1, Integer).label("step"), latest.scalar_subquery().label("fire_ts")
    ).cte(f"steps_{number}", recursive=True)
    before = select(func.max(execution_t.c.fire_ts)).where(
        execution_t.c.schedule_id == steps.c.schedule_id, is_kind, execution_t.c.fire_ts < steps.c.fire_ts
    )
    steps = steps.union_all(
        select(steps.c.schedule_id, steps.c.step + 1, before.scalar_subquery()).where(
            steps.c.step < n, steps.c.fire_ts.is_not(None)
        )
    )
    return (
        select(*_COLUMNS)
        .join(
            steps,
            and_(execution_t.c.schedule_id == steps.c.schedule_id, execution_t.c.fire_ts == steps.c.fire_ts),
        )
        .where(is_kind)
    )


# --- figures --------------------------------------------------------------------------------------------


def _place(row: Any) -> tuple[datetime, UUID]:
    return (row.fire_ts, row.execution_id)


def _recent_of(row: Any) -> RecentExecution:
    return RecentExecution(row.execution_id, Status(row.status), row.fire_ts, row.duration_seconds)


def _start_delay_s(row: Any) -> float | None:
    if row.ready_ts is None or row.started_ts is None:
        return None
    # An execution that waits for a retry may have become ready after its last start.
    delay_s: float = (row.started_ts - row.ready_ts).total_seconds()
    return delay_s if delay_s >= 0 else None


def _days_of(rows: Sequence[Any], since_ts: datetime) -> tuple[list[DayCounts], datetime]:
    by_day: dict[date, Counter[Status]] = {}
    by_kind: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: row.day):
        by_day.setdefault(EPOCH.date() + timedelta(days=row.day), Counter())[Status(row.status)] += row.amount
        by_kind.setdefault(row.kind, []).append(row)
    for some in by_kind.values():
        if sum(row.amount for row in some) == MAX_IN_DAYS:
            since_ts = max(since_ts, min(row.first_ts for row in some))
    return [DayCounts(day, dict(counts)) for day, counts in by_day.items()], since_ts


def _spread(values: Iterator[float | None]) -> DurationSummary | None:
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return DurationSummary(_percentile(known, 50), _percentile(known, 95), known[-1])


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest value such that `percent` % of the values are not above it (nearest rank)."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
