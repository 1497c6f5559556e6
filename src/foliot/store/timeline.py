"""Load over time: what fired when, binned, and the schedules whose load is still to come.

`execution_t` has no index on fire times. But ids tell when a row was made, and a row is made when its time
has come or soon after, so a range of fire times is a range of the primary key. What was made more than a day
after its time (a backfill, the end of a long outage) was load of another day, and is left out.
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
    cast,
    extract,
    func,
    literal,
    select,
    type_coerce,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH, micros_of
from foliot.planning.fire import Due
from foliot.planning.forecast import Bins
from foliot.store.database import Database
from foliot.store.dialect import Dialect, Pool
from foliot.store.due import DUE_COLUMNS, due_of
from foliot.store.overview import soonest
from foliot.store.schema import execution_t, schedule_t

MAX_ROWS = 250_000
"""Rows that one look at the past reads, of all hosts, from the end of the range backwards: about a second."""
MAX_RECENT_ROWS = 100_000
MAX_SCHEDULES = 200
MAX_CELLS = 20_000
"""Bins of single schedules, all together: the finer the bins, the fewer schedules are shown."""
MAX_UPCOMING = 5_000

MARGIN = timedelta(hours=1)
"""An id may be a little older than its fire time: one that was reserved by another machine's clock."""
LATE_S = 86_400.0
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ScheduleLoad:
    schedule_id: UUID
    name: str | None
    by_status: Mapping[Status, int]
    counts: tuple[int, ...]
    """Bin by bin."""
    counts_by_status: Mapping[Status, tuple[int, ...]]
    """Bin by bin, of the statuses that there are."""


@dataclass(frozen=True, slots=True)
class PastLoad:
    bins: Bins
    by_status: Mapping[Status, tuple[int, ...]]
    """Bin by bin, of those that there are."""
    schedules: Sequence[ScheduleLoad]
    """Those with most rows, first the busiest; then those that were asked for by name."""
    complete_from_ts: datetime
    """Where there was more than is read in one look, earlier times lack some or all of it."""


@dataclass(frozen=True, slots=True)
class MinuteLoad:
    start_ts: datetime
    by_status: Mapping[Status, int]
    late_p50_s: float | None
    """From the fire time to the start, of those that have started."""
    late_p99_s: float | None


@dataclass(frozen=True, slots=True)
class RecentLoad:
    minutes: Sequence[MinuteLoad]
    complete_from_ts: datetime


class Timeline:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    async def past(self, host_id: UUID, bins: Bins, *, including: Sequence[UUID] = ()) -> PastLoad:
        """What was decided for the times in the bins, by how it stands now.

        `including` names schedules to report even if they are not among the busiest.
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
        most = max_schedules(rows.bins)
        found = [row.schedule_id for row in await connection.execute(rows.busiest(host_id, most))]
        ids = list(dict.fromkeys([*found, *including[:most]]))
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
        """Minute by minute, up to the one under way: how many by status, and how late they started."""
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
        """Schedules of the host with a time to act on before then, soonest first: for planning.forecast."""
        statement = soonest(host_id, DUE_COLUMNS, schedule_t.c.next_run_ts < until, limit=limit)
        async with self._database.read(Pool.API) as connection:
            rows = (await connection.execute(statement)).all()
        shared: dict[Any, Any] = {}
        return [due_of(row, shared) for row in rows]


# --- the past -------------------------------------------------------------------------------------------


def max_schedules(bins: Bins) -> int:
    """How many schedules are reported one by one."""
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
    """The rows of `execution_t` whose fire time lies in the bins: all statements read the same of them."""

    def __init__(self, dialect: Dialect, bins: Bins, most: int) -> None:
        self.bins = bins
        self._dialect = dialect
        self._most = most

    async def complete_from(self, connection: AsyncConnection) -> datetime:
        """From which time on nothing is left unread: a row is not made before its time."""
        read = self._range(execution_t.c.execution_id).limit(self._most).subquery()
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

    def busiest(self, host_id: UUID, most: int) -> Select[Any]:
        some = self._some(host_id)
        return (
            select(some.c.schedule_id)
            .group_by(some.c.schedule_id)
            .order_by(func.count().desc(), some.c.schedule_id)
            .limit(most)
        )

    def by_schedule(self, host_id: UUID, wanted: Any) -> Select[Any]:
        some = self._some(host_id)
        return (
            select(some.c.schedule_id, some.c.bin, some.c.status, func.count().label("amount"))
            .where(some.c.schedule_id.in_(select(wanted.c.schedule_id)))
            .group_by(some.c.schedule_id, some.c.bin, some.c.status)
        )

    def lateness(self, host_id: UUID) -> Select[Any]:
        """The median and the 99th of 100, bin by bin, in microseconds."""
        some = self._some(host_id)
        # A retry starts late by intention, and a backfill all the more.
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
            # The smallest that so many of 100 do not exceed.
            is_it = ranked.c.place * 100 >= ranked.c.size * percent
            return func.min(case((is_it, ranked.c.late)))

        return select(ranked.c.bin, at(50).label("p50"), at(99).label("p99")).group_by(ranked.c.bin)

    def _range(self, *columns: Any) -> Select[Any]:
        """Rows made in time for the bins, latest first."""
        first = first_id_at(max(self.bins.from_ts - MARGIN, EPOCH))
        end = first_id_at(self.bins.to_ts + timedelta(seconds=LATE_S) + MARGIN)
        identity = execution_t.c.execution_id
        return select(*columns).where(identity >= first, identity < end).order_by(identity.desc())

    def _some(self, host_id: UUID) -> Any:
        """Those of the host, each with its bin. The cap is on what is read, before anything is left out."""
        read = self._range(*_READ).limit(self._most).subquery("read")
        fire = micros_in(self._dialect, read.c.fire_ts)
        started = micros_in(self._dialect, read.c.started_ts)
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


def micros_in(dialect: Dialect, instant: ColumnElement[Any]) -> ColumnElement[Any]:
    """An instant as microseconds since 1970, which is how SQLite keeps it."""
    if dialect.name == "sqlite":
        return type_coerce(instant, BigInteger)
    return cast(extract("epoch", instant) * 1_000_000, BigInteger)


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
