"""Load over time: executions by fire time, in bins, and schedules that will fire in the future.

`execution_t` has no index on fire times. But ids contain the time of creation, and a row is created at its
fire time or soon after. So a range of fire times is a range of the primary key. Rows that were created more
than a day after their fire time (a backfill, the end of a long outage) were load of another day, and are left
out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Uuid,
    case,
    func,
    literal,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect, Pool
from foliot.db.rows.due_rows import DUE_COLUMNS, due_of
from foliot.db.statements import Statements
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH, micros_of
from foliot.planning.fire import Due
from foliot.planning.forecast import Bins
from foliot.queries.overview import soonest

MAX_ROWS = 250_000
"""Max rows that a query of the past reads, of all hosts, from the end of the range backwards: about 1 s."""
MAX_RECENT_ROWS = 100_000
MAX_SCHEDULES = 200
MAX_CELLS = 20_000
"""Max number of bins of all single schedules together. The finer the bins, the fewer schedules are shown."""
MAX_UPCOMING = 5_000

MARGIN = timedelta(hours=1)
"""An id may be a little older than its fire time, if another machine's clock reserved it."""
LATE_S = 86_400.0
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ScheduleLoad:
    schedule_id: UUID
    name: str | None
    by_status: Mapping[Status, int]
    counts: tuple[int, ...]
    """One count per bin."""
    counts_by_status: Mapping[Status, tuple[int, ...]]
    """One count per bin, for the statuses that occur."""


@dataclass(frozen=True, slots=True)
class PastLoad:
    bins: Bins
    by_status: Mapping[Status, tuple[int, ...]]
    """One count per bin, for the statuses that occur."""
    schedules: Sequence[ScheduleLoad]
    """The schedules with the most executions, busiest first, then those in `including`."""
    complete_from_ts: datetime
    """Counts before this time are incomplete, because one query does not read more rows."""


@dataclass(frozen=True, slots=True)
class MinuteLoad:
    start_ts: datetime
    by_status: Mapping[Status, int]
    late_p50_s: float | None
    """Seconds from fire time to start, of executions that have started."""
    late_p99_s: float | None


@dataclass(frozen=True, slots=True)
class RecentLoad:
    minutes: Sequence[MinuteLoad]
    complete_from_ts: datetime


class Timeline(Statements):
    async def past(self, host_id: UUID, bins: Bins, *, including: Sequence[UUID] = ()) -> PastLoad:
        """Return the executions in the bins, by their current status.

        `including`: schedules to report even if they are not among the busiest.
        """
        rows = _Rows(self._dialect, bins, MAX_ROWS)
        async with self._database.read(Pool.API) as connection:
            complete_from_ts = await rows.complete_from(connection)
            counted = (await connection.execute(rows.by_bin_and_status(host_id))).all()
            busiest = await self._busiest(connection, rows, host_id, including)
        by_status: dict[Status, list[int]] = {}
        for row in counted:
            by_status.setdefault(Status(row.status), [0] * bins.count)[row.bin] += row.amount
        return PastLoad(
            bins, {status: tuple(counts) for status, counts in by_status.items()}, busiest, complete_from_ts
        )

    async def _busiest(
        self, connection: AsyncConnection, rows: "_Rows", host_id: UUID, including: Sequence[UUID]
    ) -> list[ScheduleLoad]:
        limit = max_schedules(rows.bins)
        found = [row.schedule_id for row in await connection.execute(rows.busiest(host_id, limit))]
        ids = list(dict.fromkeys([*found, *including[:limit]]))
        if not ids:
            return []
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in ids])
        named = select(schedule_t.c.schedule_id, schedule_t.c.schedule_name).join(
            wanted, wanted.c.schedule_id == schedule_t.c.schedule_id
        )
        names = {row.schedule_id: row.schedule_name for row in await connection.execute(named)}
        cells = rows.by_schedule(host_id, wanted)
        by_status: dict[UUID, dict[Status, list[int]]] = {each: {} for each in ids}
        for row in await connection.execute(cells):
            counts = by_status[row.schedule_id].setdefault(Status(row.status), [0] * rows.bins.count)
            counts[row.bin] += row.amount
        return [_load_of(each, names.get(each), by_status[each], rows.bins.count) for each in ids]

    async def last_hour(self, host_id: UUID) -> RecentLoad:
        """Return counts by status and start delays per minute of the last hour, with the current minute."""
        async with self._database.read(Pool.API) as connection:
            now = (await connection.execute(select(self._dialect.now()))).scalar_one()
            under_way = EPOCH + (now - EPOCH) // _MINUTE * _MINUTE
            bins = Bins(under_way - 59 * _MINUTE, _MINUTE, 60)
            rows = _Rows(self._dialect, bins, MAX_RECENT_ROWS)
            complete_from_ts = await rows.complete_from(connection)
            counted = (await connection.execute(rows.by_bin_and_status(host_id))).all()
            late = {row.bin: row for row in await connection.execute(rows.lateness(host_id))}
        by_status: dict[int, dict[Status, int]] = {}
        for row in counted:
            by_status.setdefault(row.bin, {})[Status(row.status)] = row.amount
        return RecentLoad(
            [
                MinuteLoad(
                    bins.start_of(number),
                    by_status.get(number, {}),
                    late[number].p50 / 1e6 if number in late else None,
                    late[number].p99 / 1e6 if number in late else None,
                )
                for number in range(bins.count)
            ],
            complete_from_ts,
        )

    async def upcoming(self, host_id: UUID, until: datetime, *, limit: int = MAX_UPCOMING) -> list[Due]:
        """Return the host's schedules that run before `until`, soonest first, for planning.forecast."""
        statement = soonest(host_id, DUE_COLUMNS, schedule_t.c.next_run_ts < until, limit=limit)
        rows = (await self._database.fetch(Pool.API, statement)).all()
        shared: dict[Any, Any] = {}
        return [due_of(row, shared) for row in rows]


# --- the past -------------------------------------------------------------------------------------------


def max_schedules(bins: Bins) -> int:
    """Return how many schedules are reported individually."""
    return min(MAX_SCHEDULES, max(1, MAX_CELLS // bins.count))


def _load_of(
    schedule_id: UUID, name: str | None, by_status: Mapping[Status, Sequence[int]], bin_count: int
) -> ScheduleLoad:
    counts = tuple(map(sum, zip(*by_status.values(), strict=True))) if by_status else (0,) * bin_count
    return ScheduleLoad(
        schedule_id,
        name,
        {status: sum(each) for status, each in by_status.items()},
        counts,
        {status: tuple(each) for status, each in by_status.items()},
    )


class _Rows:
    """The rows of `execution_t` with a fire time in the bins. All statements read the same rows."""

    def __init__(self, dialect: Dialect, bins: Bins, limit: int) -> None:
        self.bins = bins
        self._dialect = dialect
        self._limit = limit

    async def complete_from(self, connection: AsyncConnection) -> datetime:
        """Return the time from which on all rows are read. No row is created before its fire time."""
        read = self._range(execution_t.c.execution_id).limit(self._limit).subquery()
        oldest = select(read.c.execution_id).order_by(read.c.execution_id).limit(1)
        last_read = (await connection.execute(oldest)).scalar_one_or_none()
        if last_read is None:
            return self.bins.from_ts
        earlier = self._range(execution_t.c.execution_id).where(execution_t.c.execution_id < last_read)
        unread = (await connection.execute(earlier.limit(1))).scalar_one_or_none()
        if unread is None:
            return self.bins.from_ts
        return max(self.bins.from_ts, EPOCH + timedelta(milliseconds=(unread.int >> 80) + 1))

    def by_bin_and_status(self, host_id: UUID) -> Select[Any]:
        some = self._some(host_id)
        return select(some.c.bin, some.c.status, func.count().label("amount")).group_by(
            some.c.bin, some.c.status
        )

    def busiest(self, host_id: UUID, limit: int) -> Select[Any]:
        some = self._some(host_id)
        return (
            select(some.c.schedule_id)
            .group_by(some.c.schedule_id)
            .order_by(func.count().desc(), some.c.schedule_id)
            .limit(limit)
        )

    def by_schedule(self, host_id: UUID, wanted: Any) -> Select[Any]:
        some = self._some(host_id)
        return (
            select(some.c.schedule_id, some.c.bin, some.c.status, func.count().label("amount"))
            .where(some.c.schedule_id.in_(select(wanted.c.schedule_id)))
            .group_by(some.c.schedule_id, some.c.bin, some.c.status)
        )

    def lateness(self, host_id: UUID) -> Select[Any]:
        """Select the median and the 99th percentile of the start delay per bin, in microseconds."""
        some = self._some(host_id)
        # Retries and backfills start late by design.
        started = (
            select(some.c.bin, some.c.late)
            .where(some.c.late.is_not(None), some.c.attempt == 1)
            .where(some.c.triggered_by != TriggeredBy.BACKFILL.value)
            .subquery()
        )
        place = func.row_number().over(partition_by=started.c.bin, order_by=started.c.late)
        size = func.count().over(partition_by=started.c.bin)
        ranked = select(started.c.bin, started.c.late, place.label("place"), size.label("size")).subquery()

        def at(percent: int) -> ColumnElement[Any]:
            # The smallest value such that `percent` % of the values are not above it (nearest rank).
            is_it = ranked.c.place * 100 >= ranked.c.size * percent
            return func.min(case((is_it, ranked.c.late)))

        return select(ranked.c.bin, at(50).label("p50"), at(99).label("p99")).group_by(ranked.c.bin)

    def _range(self, *columns: Any) -> Select[Any]:
        """Select the rows created in time for the bins, latest first."""
        first = first_id_at(max(self.bins.from_ts - MARGIN, EPOCH))
        end = first_id_at(self.bins.to_ts + timedelta(seconds=LATE_S) + MARGIN)
        identity = execution_t.c.execution_id
        return select(*columns).where(identity >= first, identity < end).order_by(identity.desc())

    def _some(self, host_id: UUID) -> Any:
        """Select the host's rows with their bin. The cap applies to rows read, before filtering."""
        read = self._range(*_READ).limit(self._limit).subquery("read")
        fire = self._dialect.micros(read.c.fire_ts)
        started = self._dialect.micros(read.c.started_ts)
        width = self.bins.width // timedelta(microseconds=1)
        number = (fire - micros_of(self.bins.from_ts)) // literal(width, BigInteger)
        return (
            select(
                read.c.schedule_id,
                read.c.status,
                read.c.attempt,
                read.c.triggered_by,
                number.label("bin"),
                (started - fire).label("late"),
            )
            .where(
                read.c.host_id == host_id,
                read.c.fire_ts >= self.bins.from_ts,
                read.c.fire_ts < self.bins.to_ts,
                self._dialect.plus(read.c.fire_ts, LATE_S) >= read.c.created_ts,
            )
            .subquery("some")
        )


_READ = tuple(
    execution_t.c[name]
    for name in (
        "host_id",
        "schedule_id",
        "status",
        "fire_ts",
        "started_ts",
        "created_ts",
        "attempt",
        "triggered_by",
    )
)
