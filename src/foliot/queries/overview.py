"""The overview of a host: a fixed number of statements. Each reads a bounded number of rows.

Unbounded counts stop at a cap and say so. Nothing is locked. Each statement sees its own moment, so the
figures may differ by what happened in between.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, case, func, literal, select, text, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import IS_CLAIMABLE, IS_NOT_WELL, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import Status
from foliot.model.ids import first_id_at
from foliot.model.policy import Priority
from foliot.model.schedule import ScheduleState
from foliot.queries.unknown_tasks import UnknownTask, unknown_tasks
from foliot.queries.unserved_queues import UnservedQueue, unserved_queues

MAX_SCHEDULES = 100_000
MANY_SCHEDULES = 10_000
REMEMBERED_FOR_S = 5.0
"""How long the counts by state of a host with many schedules are cached: no index has them, and 100,000 rows
take 60 ms on PostgreSQL and 110 ms on SQLite."""
TASKS_REMEMBERED_FOR_S = 30.0
"""How long the list of schedules without a registered task is cached."""

MAX_OPEN = 10_000
MAX_BAD = 1_000
MAX_OVERDUE = 1_000
SHOWN = 10
"""Number of next fires, and of recent failures."""

MIN_OVERDUE_S = 10.0
OVERDUE_TTLS = 3
"""Lease TTLs before a schedule counts as overdue: a takeover and the new leader's load take time."""

BAD = (Status.FAILED, Status.TIMEOUT, Status.UNKNOWN)
"""Final statuses of failed executions. Skipped and cancelled ones did not fail."""

_DAY = timedelta(days=1)
_ERROR_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Counted:
    count: int
    is_capped: bool = False
    """Counting stopped at the cap: there are at least this many."""


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    shard: int
    instance_id: str | None
    """None: the shard has no leader."""
    epoch: int
    heartbeat_age_s: float
    is_fresh: bool
    """The heartbeat is not older than the lease TTL."""


@dataclass(frozen=True, slots=True)
class StateCounts:
    by_state: Mapping[ScheduleState, int]
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class OpenExecutionCounts:
    by_status: Mapping[Status, int]
    held: int
    """How many of the pending ones wait for another run of their schedule to end."""
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class NextFire:
    schedule_id: UUID
    name: str
    next_fire_ts: datetime
    next_run_ts: datetime


@dataclass(frozen=True, slots=True)
class Overdue:
    """Schedules that should have fired more than ten seconds ago, or three lease TTLs if that is longer."""

    count: int
    is_capped: bool
    oldest: NextFire | None


@dataclass(frozen=True, slots=True)
class RecentFailure:
    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    status: Status
    error: str | None
    """First line of the error."""
    ended_ts: datetime | None


@dataclass(frozen=True, slots=True)
class Overview:
    now: datetime
    leaders: Sequence[LeaderRecord]
    schedules: StateCounts
    executions: OpenExecutionCounts
    ended_badly: Counted
    """Failed executions of those created in the last 24 hours."""
    next_fires: Sequence[NextFire]
    recent_failures: Sequence[RecentFailure]
    overdue: Overdue
    unknown_tasks: Sequence[UnknownTask] = ()
    unserved_queues: Sequence[UnservedQueue] = ()


class Overviews:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        self._states: dict[UUID, tuple[datetime, StateCounts]] = {}
        self._tasks: dict[UUID, tuple[datetime, Sequence[UnknownTask]]] = {}

    async def of_host(self, host_id: UUID, *, ttl_s: float = 3.0) -> Overview:
        """Return the overview of a host. A leader whose heartbeat is older than `ttl_s` is not fresh."""
        async with self._database.read(Pool.API) as connection:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            late = now - _overdue_after(ttl_s)
            states = await self._count_states(connection, host_id, now)
            return Overview(
                now=now,
                leaders=await _leaders(connection, now, ttl_s),
                schedules=states,
                executions=await _open(connection, host_id),
                ended_badly=await _ended_badly(connection, host_id, since=now - _DAY),
                next_fires=await _next_fires(connection, host_id, late),
                recent_failures=await _failures(connection, host_id),
                overdue=await _overdue(connection, host_id, late),
                unknown_tasks=await self._unknown_tasks(connection, host_id, now, states),
                unserved_queues=await unserved_queues(connection, self._dialect, now, host_id),
            )

    async def overdue_anywhere(self, *, ttl_s: float) -> Overdue:
        """Return the overdue schedules of all hosts, for monitoring. Independent of the API's connections."""
        async with self._database.read(Pool.LEASE) as connection:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            statement = (
                select(*_NEXT)
                .where(schedule_t.c.active, schedule_t.c.next_run_ts < now - _overdue_after(ttl_s))
                .order_by(schedule_t.c.next_run_ts)
                .limit(MAX_OVERDUE + 1)
            )
            return _overdue_of((await connection.execute(statement)).all())

    async def unknown_tasks_anywhere(self) -> Sequence[UnknownTask]:
        """Return unknown tasks of all hosts."""
        async with self._database.read(Pool.API) as connection:
            return await unknown_tasks(connection, self._dialect)

    async def unserved_queues_anywhere(self) -> Sequence[UnservedQueue]:
        """Return unserved queues of all hosts."""
        async with self._database.read(Pool.API) as connection:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            return await unserved_queues(connection, self._dialect, now)

    async def _unknown_tasks(
        self, connection: AsyncConnection, host_id: UUID, now: datetime, states: StateCounts
    ) -> Sequence[UnknownTask]:
        read_ts, tasks = self._tasks.get(host_id, (now, None))
        if tasks is not None and abs((now - read_ts).total_seconds()) < TASKS_REMEMBERED_FOR_S:
            return tasks
        self._tasks.pop(host_id, None)
        tasks = await unknown_tasks(connection, self._dialect, host_id)
        if sum(states.by_state.values()) >= MANY_SCHEDULES:
            self._tasks[host_id] = (now, tasks)
        return tasks

    async def _count_states(self, connection: AsyncConnection, host_id: UUID, now: datetime) -> StateCounts:
        counted_ts, counts = self._states.get(host_id, (now, None))
        if counts is not None and abs((now - counted_ts).total_seconds()) < REMEMBERED_FOR_S:
            return counts
        self._states.pop(host_id, None)
        counts = await _states(connection, host_id)
        if sum(counts.by_state.values()) >= MANY_SCHEDULES:
            self._states[host_id] = (now, counts)
        return counts

    async def leaders(self, *, ttl_s: float = 3.0) -> list[LeaderRecord]:
        async with self._database.read(Pool.API) as connection:
            now = (await connection.execute(select(self._dialect.now()))).scalar_one()
            return await _leaders(connection, now, ttl_s)


# --- the cluster ----------------------------------------------------------------------------------------


async def _leaders(connection: AsyncConnection, now: datetime, ttl_s: float) -> list[LeaderRecord]:
    rows = await connection.execute(select(scheduler_lock_t).order_by(scheduler_lock_t.c.lock_id))
    return [_leader_of(row, (now - row.last_heartbeat).total_seconds(), ttl_s) for row in rows]


def _leader_of(row: Any, age_s: float, ttl_s: float) -> LeaderRecord:
    return LeaderRecord(
        shard=row.lock_id - 1,
        instance_id=row.instance_id or None,
        epoch=row.epoch,
        # A heartbeat may be written between the two statements.
        heartbeat_age_s=max(0.0, age_s),
        is_fresh=bool(row.instance_id) and age_s <= ttl_s,
    )


# --- schedules ------------------------------------------------------------------------------------------


async def _states(connection: AsyncConnection, host_id: UUID) -> StateCounts:
    some = (
        select(schedule_t.c.state)
        .where(schedule_t.c.host_id == host_id, schedule_t.c.deleted_ts.is_(None))
        .limit(MAX_SCHEDULES)
        .subquery()
    )
    rows = await connection.execute(select(some.c.state, func.count()).group_by(some.c.state))
    counts = {ScheduleState(state): count for state, count in rows}
    return StateCounts(counts, is_capped=sum(counts.values()) == MAX_SCHEDULES)


def soonest(
    host_id: UUID, columns: Sequence[Any], *conditions: ColumnElement[bool], limit: int
) -> Select[Any]:
    """Select schedules of a host that will become due, soonest first.

    Uses idx_schedule_host_next_run: merges the first rows of each of the three priorities. `columns` must
    include `next_run_ts`; the conditions should bound it.
    """
    first = [
        select(
            select(*columns)
            .where(
                schedule_t.c.host_id == host_id,
                schedule_t.c.priority == priority.value,
                schedule_t.c.next_run_ts.is_not(None),
                *conditions,
            )
            .order_by(schedule_t.c.next_run_ts)
            .limit(limit)
            .subquery()
        )
        for priority in Priority
    ]
    merged = union_all(*first).subquery()
    return select(merged).order_by(merged.c.next_run_ts).limit(limit)


_NEXT = (
    schedule_t.c.schedule_id,
    schedule_t.c.schedule_name,
    schedule_t.c.next_fire_ts,
    schedule_t.c.next_run_ts,
)


async def _next_fires(connection: AsyncConnection, host_id: UUID, late: datetime) -> list[NextFire]:
    statement = soonest(host_id, _NEXT, schedule_t.c.next_run_ts >= late, limit=SHOWN)
    return [_next_fire_of(row) for row in await connection.execute(statement)]


async def _overdue(connection: AsyncConnection, host_id: UUID, late: datetime) -> Overdue:
    # An inactive, deleted or indefinitely paused schedule has no next_run_ts. A pause with an end has a
    # next_run_ts after that end. So a past next_run_ts always means overdue.
    statement = soonest(host_id, _NEXT, schedule_t.c.next_run_ts < late, limit=MAX_OVERDUE + 1)
    return _overdue_of((await connection.execute(statement)).all())


def _overdue_after(ttl_s: float) -> timedelta:
    # Tests with virtual time use long TTLs.
    return timedelta(seconds=max(MIN_OVERDUE_S, OVERDUE_TTLS * ttl_s))


def _overdue_of(rows: Sequence[Any]) -> Overdue:
    oldest = _next_fire_of(rows[0]) if rows else None
    return Overdue(min(len(rows), MAX_OVERDUE), len(rows) > MAX_OVERDUE, oldest)


def _next_fire_of(row: Any) -> NextFire:
    return NextFire(row.schedule_id, row.schedule_name, row.next_fire_ts, row.next_run_ts)


# --- executions -----------------------------------------------------------------------------------------


async def _open(connection: AsyncConnection, host_id: UUID) -> OpenExecutionCounts:
    table = execution_t
    claimable = (
        select(table.c.host_id, table.c.status)
        .where(table.c.host_id == host_id, text(IS_CLAIMABLE))
        .limit(MAX_OPEN)
        .subquery()
    )
    # The indexes of running and of held executions are not per host, so the cap applies to all rows read.
    running = (
        select(table.c.host_id, table.c.status).where(text("status = 'running'")).limit(MAX_OPEN).subquery()
    )
    held = (
        select(table.c.host_id, table.c.status)
        .where(text("status = 'pending' AND due_by_ts IS NULL"))
        .limit(MAX_OPEN)
        .subquery()
    )
    figures = [
        select(
            literal(is_held).label("is_held"),
            some.c.status,
            func.count().label("scanned"),
            func.sum(case((some.c.host_id == host_id, 1), else_=0)).label("ours"),
        ).group_by(some.c.status)
        for some, is_held in ((claimable, False), (running, False), (held, True))
    ]
    counts: Counter[Status] = Counter()
    held_count, is_capped = 0, False
    for row in await connection.execute(union_all(*figures)):
        counts[Status(row.status)] += row.ours
        held_count += row.ours if row.is_held else 0
        is_capped = is_capped or row.scanned >= MAX_OPEN
    return OpenExecutionCounts(dict(+counts), held_count, is_capped)


def _ended(host_id: UUID, status: Status, *columns: Any) -> Select[Any]:
    # Literal SQL text: PostgreSQL then uses the partial index also for a prepared statement, and SQLite uses
    # it only for the exact condition of the index.
    return select(*columns).where(
        execution_t.c.host_id == host_id, text(IS_NOT_WELL), text(f"status = '{status.value}'")
    )


async def _ended_badly(connection: AsyncConnection, host_id: UUID, *, since: datetime) -> Counted:
    found = [
        select(
            _ended(host_id, status, execution_t.c.execution_id)
            .where(execution_t.c.execution_id >= first_id_at(since))
            .limit(MAX_BAD + 1)
            .subquery()
        )
        for status in BAD
    ]
    statement = select(func.count()).select_from(union_all(*found).subquery())
    count = (await connection.execute(statement)).scalar_one()
    return Counted(min(count, MAX_BAD), count > MAX_BAD)


async def _failures(connection: AsyncConnection, host_id: UUID) -> list[RecentFailure]:
    latest = [
        select(
            _ended(host_id, status, execution_t.c.execution_id)
            .order_by(execution_t.c.execution_id.desc())
            .limit(SHOWN)
            .subquery()
        )
        for status in BAD
    ]
    ids = union_all(*latest).subquery()
    chosen = select(ids).order_by(ids.c.execution_id.desc()).limit(SHOWN).subquery()
    statement = (
        select(
            execution_t.c.execution_id,
            execution_t.c.schedule_id,
            schedule_t.c.schedule_name,
            execution_t.c.status,
            func.substr(execution_t.c.error, 1, _ERROR_LENGTH).label("error"),
            execution_t.c.ended_ts,
        )
        .join(chosen, chosen.c.execution_id == execution_t.c.execution_id)
        .outerjoin(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
        .order_by(execution_t.c.execution_id.desc())
    )
    return [_failure_of(row) for row in await connection.execute(statement)]


def _failure_of(row: Any) -> RecentFailure:
    lines = (row.error or "").strip().splitlines()
    return RecentFailure(
        execution_id=row.execution_id,
        schedule_id=row.schedule_id,
        schedule_name=row.schedule_name,
        status=Status(row.status),
        error=lines[0] if lines else None,
        ended_ts=row.ended_ts,
    )
