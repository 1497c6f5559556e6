"""Search executions for a list: exact for every filter, in bounded time for any number of executions.

The indexes used here cost firing little or nothing, so no single index fits every filter:

- executions of given schedules, by fire time: three indexes (scheduled, backfilled, by hand), merged;
- executions that ended without success, by creation time: a partial index of these;
- open executions: usually few, so they are gathered (all read, then sorted); if they are too many, the search
  walks instead (it scans an index in the order of the list);
- all others, by creation time: a descending scan of the primary key.

Conditions that an index does not cover are checked row by row: a few hundred rows first, then more. A page
that has scanned `MAX_WALKED` rows is returned as it is, short or even empty, with the position of the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    TextClause,
    Uuid,
    and_,
    bindparam,
    false,
    func,
    null,
    or_,
    select,
    text,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.execution_rows import execution_of
from foliot.db.tables.executions import IS_BY_HAND, IS_NOT_WELL, IS_OPEN, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.db.types import Instant
from foliot.model.execution import FINAL, OPEN, Execution, Status, TriggeredBy
from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH

MAX_WALKED = 100_000
"""Row limit of a scan in the order of the table, which takes PostgreSQL 65 ms and SQLite 220 ms."""


MAX_SCATTERED = 20_000
"""Row limit of an index scan whose rows lie scattered over the table."""


MAX_GATHERED = 10_000


MAX_AT_ONCE = 1_000
"""The list is exact if a schedule has at most this many manual executions at the same microsecond."""


NOT_WELL = FINAL - {Status.SUCCESS}


BODIES = ("args", "result", "traceback")


MARGIN = timedelta(hours=1)
"""Maximum difference between the time in an execution's id and its real creation time."""


LATE = timedelta(days=1)
"""Executions created later than this after their fire time are in an index of their own."""


# Literals, not parameters: PostgreSQL then uses the partial indexes in prepared statements too.
_OF_SCHEDULES = {
    "triggered_by = 'scheduler'": {TriggeredBy.SCHEDULER},
    "triggered_by = 'backfill'": {TriggeredBy.BACKFILL},
    IS_BY_HAND: {TriggeredBy.API, TriggeredBy.MANUAL},
}


_IS_RUNNING = "status = 'running'"


_Conditions = tuple[ColumnElement[bool] | TextClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions to list. All given conditions must hold; of several values, any may match."""

    host_id: UUID | None = None
    schedule_ids: Sequence[UUID] = ()
    statuses: Sequence[Status] = ()
    queues: Sequence[str] = ()
    triggered_by: Sequence[TriggeredBy] = ()
    fire_from: datetime | None = None
    fire_to: datetime | None = None
    """Exclusive; `fire_from` is inclusive."""


@dataclass(frozen=True, slots=True)
class ExecutionPosition:
    """Cursor of a list: the next page starts after it. It is valid in every order that a list may have."""

    fire_ts: datetime
    execution_id: UUID


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    items: Sequence[Execution]
    next: ExecutionPosition | None
    """Where the next page starts; None: this is the last page. A page before the last may be short."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A range of one index to scan."""

    conditions: _Conditions
    order: Sequence[ColumnElement[Any]]
    """The order of the index. Sorting by it makes the planner use this index despite its row estimates."""
    statuses: Sequence[Status]
    """Statuses to take from it; empty: all."""
    has_ties: bool = False
    is_gathered: bool = False
    """Its order is not that of the list, so the whole range must be read."""


@dataclass(frozen=True, slots=True)
class ExecutionSearch:
    """Chooses the indexes for a filter and reads them."""

    wanted: ExecutionFilter
    dialect: Dialect
    limit: int
    max_gathered: int
    with_bodies: bool
    is_overfull: bool = False
    """There were more rows to gather than `max_gathered`, so the search walks instead."""

    @property
    def max_walked(self) -> int:
        return MAX_SCATTERED if self._is_by_fire_time or self._is_rare else MAX_WALKED

    async def find(
        self, connection: AsyncConnection, after: ExecutionPosition | None, walking: int
    ) -> tuple[ExecutionPage, "ExecutionSearch"]:
        """Scan about `walking` rows; return the page found, and the search to continue with."""
        shape = self._shape(after, walking)
        if shape is None:
            rows = (await connection.execute(self.statement(after, walking))).all()
        else:
            rows = (await connection.execute(_kept(shape), self._values(after))).all()
        if any(row.is_end and row.is_gathered for row in rows):
            return await replace(self, is_overfull=True).find(connection, after, walking)
        return _page_of(rows, self.limit), self

    def statement(self, after: ExecutionPosition | None, walking: int) -> Select[Any]:
        return self._rows(self._keys(self._sources(after), after, walking))

    # --- cached statements ------------------------------------------------------------------------

    def _shape(self, after: ExecutionPosition | None, walking: int) -> "_Shape | None":
        """Return the cache key of the statement; None: the filter is too specific to cache it."""
        wanted = self.wanted
        if wanted.queues or wanted.fire_from is not None or wanted.fire_to is not None:
            return None
        return _Shape(
            wanted.host_id is not None,
            len(wanted.schedule_ids),
            tuple(wanted.statuses),
            tuple(wanted.triggered_by),
            after is not None,
            walking,
            replace(self, wanted=_ANY),
        )

    def _values(self, after: ExecutionPosition | None) -> dict[str, Any]:
        values: dict[str, Any] = {
            f"of_{number}": schedule_id for number, schedule_id in enumerate(self.wanted.schedule_ids)
        }
        if self.wanted.host_id is not None:
            values["of_host"] = self.wanted.host_id
        if after is not None:
            values |= {"after_fire_ts": after.fire_ts, "after_id": after.execution_id}
        return values

    # --- choosing indexes -------------------------------------------------------------------------

    @property
    def _is_by_fire_time(self) -> bool:
        return bool(self.wanted.schedule_ids)

    @property
    def _is_rare(self) -> bool:
        """Whether partial indexes, without successful executions, cover all wanted statuses."""
        statuses = frozenset(self.wanted.statuses)
        has_index = self.wanted.host_id is not None or statuses <= OPEN
        return bool(statuses) and Status.SUCCESS not in statuses and has_index

    def _sources(self, after: ExecutionPosition | None) -> list[_Source]:
        if self._is_rare and not self.is_overfull:
            not_well = sorted(NOT_WELL.intersection(self.wanted.statuses))
            sources = self._gather_open(sorted(OPEN.intersection(self.wanted.statuses)))
            if self._is_by_fire_time:
                return sources + self._gather_not_well(not_well)
            return sources + self._walk_not_well(not_well, after)
        if self._is_by_fire_time:
            return self._walk_schedules(after)
        return self._walk_down([()], self.wanted.statuses, after)

    def _walk_schedules(self, after: ExecutionPosition | None) -> list[_Source]:
        table = execution_t
        triggers = frozenset(self.wanted.triggered_by or TriggeredBy)
        bounds = _fire_times(self.wanted)
        if after is not None:
            bounds.append(table.c.fire_ts <= after.fire_ts)
        return [
            _Source(
                (table.c.schedule_id == schedule_id, text(is_triggered), *bounds),
                [table.c.fire_ts.desc()],
                self.wanted.statuses,
                has_ties=is_triggered == IS_BY_HAND,
            )
            for schedule_id in self.wanted.schedule_ids
            for is_triggered, triggered_by in _OF_SCHEDULES.items()
            if triggers & triggered_by
        ]

    def _walk_down(
        self, ranges: Sequence[_Conditions], statuses: Sequence[Status], after: ExecutionPosition | None
    ) -> list[_Source]:
        """Return ranges of indexes ordered by id, bounded by the wanted fire times."""
        key = execution_t.c.execution_id
        bounds: list[ColumnElement[bool]] = []
        if after is not None:
            bounds.append(key < after.execution_id)
        lowest = _id_at(self.wanted.fire_from, -MARGIN)
        if lowest is not None:
            bounds.append(key >= lowest)
        highest = _id_at(self.wanted.fire_to, LATE + MARGIN)
        walks: list[_Conditions] = [(*each, *bounds) for each in ranges]
        if highest is not None:
            walks = [(*each, key < highest) for each in walks]
            if after is None or after.execution_id > highest:
                walks.append((text(self.dialect.is_late), *bounds, key >= highest))
        return [_Source(each, [key.desc()], statuses) for each in walks]

    def _walk_not_well(self, statuses: Sequence[Status], after: ExecutionPosition | None) -> list[_Source]:
        ranges = [self._has_status(status) for status in statuses]
        return self._walk_down(ranges, statuses, after) if statuses else []

    def _gather_not_well(self, statuses: Sequence[Status]) -> list[_Source]:
        """Return ranges over the whole host, since the index has no schedule ids."""
        key = execution_t.c.execution_id
        lowest = _id_at(self.wanted.fire_from, -MARGIN)
        bounds = () if lowest is None else (key >= lowest,)
        return [
            _Source((*self._has_status(status), *bounds), [key.desc()], [status], is_gathered=True)
            for status in statuses
        ]

    def _gather_open(self, statuses: Sequence[Status]) -> list[_Source]:
        if not statuses:
            return []
        table = execution_t
        if self.wanted.schedule_ids:
            conditions: _Conditions = (text(IS_OPEN), table.c.schedule_id.in_(self.wanted.schedule_ids))
            order = table.c.schedule_id
        elif statuses == [Status.RUNNING]:
            # At most as many as workers can run, even if a million wait.
            conditions, order = (text(_IS_RUNNING),), table.c.lease_until
        else:
            conditions, order = (text(IS_OPEN),), table.c.schedule_id
        return [_Source(conditions, [order], statuses, is_gathered=True)]

    def _has_status(self, status: Status) -> _Conditions:
        return (
            execution_t.c.host_id == self.wanted.host_id,
            execution_t.c.status == status.value,
            text(IS_NOT_WELL),
        )

    # --- reading indexes --------------------------------------------------------------------------

    def _keys(self, sources: Sequence[_Source], after: ExecutionPosition | None, walking: int) -> Subquery:
        """Select the first matches of all sources, and the row at which a source reached its row limit."""
        limit = max(walking // len(sources), self.limit + 1)
        each = [self._read(number, source, limit, after) for number, source in enumerate(sources)]
        read = (each[0] if len(each) == 1 else union_all(*each)).subquery("read")
        number = func.row_number().over(partition_by=read.c.source, order_by=self._order(read.c))
        numbered = select(read, number.label("number")).subquery("numbered")
        is_end = (numbered.c.number == numbered.c.most).label("is_end")
        is_overfull = and_(is_end, numbered.c.is_gathered)
        return (
            select(*[numbered.c[name] for name in ("execution_id", "fire_ts", "is_wanted", "is_gathered")])
            .add_columns(is_end)
            .where(or_(numbered.c.is_wanted, is_end))
            # Sorted first, so that the limit can't cut it off.
            .order_by(is_overfull.desc(), *self._order(numbered.c))
            .limit(literally(self.limit + 1))
            .subquery("keys")
        )

    def _read(self, number: int, source: _Source, limit: int, after: ExecutionPosition | None) -> Select[Any]:
        conditions = _conditions(replace(self.wanted, statuses=source.statuses))
        if source.is_gathered:
            limit = self.max_gathered + 1
            conditions += [] if after is None else [self._is_after(execution_t.c, after)]
        rows = (
            select(
                execution_t.c.execution_id,
                execution_t.c.fire_ts,
                and_(true(), *conditions).label("is_wanted"),
            )
            .where(*source.conditions)
            .order_by(*source.order)
        )
        if self._is_by_fire_time and not source.is_gathered:
            first = _of_any_number(rows, limit + (MAX_AT_ONCE if source.has_ties else 1))
        else:
            first = rows.limit(literally(limit)).subquery("first")
        found = select(
            first,
            literally(number).label("source"),
            literally(limit).label("most"),
            (true() if source.is_gathered else false()).label("is_gathered"),
        )
        # An index by fire time can't start in the middle of one instant: drop what the last page had of it.
        return found if after is None or source.is_gathered else found.where(self._is_after(first.c, after))

    def _rows(self, keys: Subquery) -> Select[Any]:
        columns = [
            type_coerce(null(), column.type).label(column.name)
            if column.name in BODIES and not self.with_bodies
            else column
            for column in execution_t.c
        ]
        return (
            select(*columns, schedule_t.c.schedule_name, keys.c.is_wanted, keys.c.is_end, keys.c.is_gathered)
            .select_from(keys)
            .join(execution_t, execution_t.c.execution_id == keys.c.execution_id)
            .outerjoin(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
            .order_by(*self._order(keys.c))
        )

    def _order(self, columns: Any) -> list[ColumnElement[Any]]:
        by_id = columns.execution_id.desc()
        return [columns.fire_ts.desc(), by_id] if self._is_by_fire_time else [by_id]

    def _is_after(self, columns: Any, after: ExecutionPosition) -> ColumnElement[bool]:
        is_below: ColumnElement[bool] = columns.execution_id < after.execution_id
        if not self._is_by_fire_time:
            return is_below
        return or_(columns.fire_ts < after.fire_ts, and_(columns.fire_ts == after.fire_ts, is_below))


_ANY = ExecutionFilter()


class _Shape(NamedTuple):
    """Cache key of a statement: searches of equal shape differ only in parameter values."""

    has_host: bool
    schedules: int
    statuses: tuple[Status, ...]
    triggered_by: tuple[TriggeredBy, ...]
    has_after: bool
    walking: int
    search: ExecutionSearch
    """The search without its filter."""


@lru_cache(maxsize=256)
def _kept(shape: _Shape) -> Select[Any]:
    """Build the statement of a shape. Cached, since building it takes three times as long as running it."""
    identity = Uuid()
    after = (
        ExecutionPosition(
            bindparam("after_fire_ts", type_=Instant()),  # type: ignore[arg-type] # for the value to come
            bindparam("after_id", type_=identity),  # type: ignore[arg-type]
        )
        if shape.has_after
        else None
    )
    wanted = ExecutionFilter(
        host_id=bindparam("of_host", type_=identity) if shape.has_host else None,  # type: ignore[arg-type]
        schedule_ids=[
            bindparam(f"of_{number}", type_=identity)  # type: ignore[misc]
            for number in range(shape.schedules)
        ],
        statuses=shape.statuses,
        triggered_by=shape.triggered_by,
    )
    return replace(shape.search, wanted=wanted).statement(after, shape.walking)


def _of_any_number(rows: Select[Any], limit: int) -> Subquery:
    """Select the first rows by fire time, with a limit that PostgreSQL's planner can't see.

    If its statistics say that the schedule has few rows, it would otherwise read and sort all of them, though
    by now there may be a million.
    """
    walked = rows.limit(select(literally(limit)).scalar_subquery()).subquery("walked")
    return select(walked).order_by(walked.c.fire_ts.desc()).limit(literally(limit)).subquery("first")


def _conditions(wanted: ExecutionFilter) -> list[ColumnElement[bool]]:
    table = execution_t
    conditions = [] if wanted.host_id is None else [table.c.host_id == wanted.host_id]
    for column, values in (
        (table.c.schedule_id, wanted.schedule_ids),
        (table.c.status, [each.value for each in wanted.statuses]),
        (table.c.queue, wanted.queues),
        (table.c.triggered_by, [each.value for each in wanted.triggered_by]),
    ):
        if values:
            conditions.append(column.in_(values))
    return conditions + _fire_times(wanted)


def _fire_times(wanted: ExecutionFilter) -> list[ColumnElement[bool]]:
    conditions = []
    if wanted.fire_from is not None:
        conditions.append(execution_t.c.fire_ts >= wanted.fire_from)
    if wanted.fire_to is not None:
        conditions.append(execution_t.c.fire_ts < wanted.fire_to)
    return conditions


def _id_at(instant: datetime | None, shift: timedelta) -> UUID | None:
    """Return the lowest id of an instant shifted by `shift`; None: no bound."""
    if instant is None:
        return None
    try:
        return first_id_at(max(instant + shift, EPOCH))
    except OverflowError:
        return None


def literally(number: int) -> BindParameter[int]:
    """Put a number into the statement's text, where the planner sees it even in a prepared statement."""
    return bindparam(None, number, type_=Integer(), unique=True, literal_execute=True)


def _page_of(rows: Sequence[Any], limit: int) -> ExecutionPage:
    items: list[Execution] = []
    for row in rows:
        if row.is_wanted:
            if len(items) == limit:
                return ExecutionPage(items, position_of(items[-1]))
            items.append(execution_of(row))
        if row.is_end:
            return ExecutionPage(items, position_of(row))
    return ExecutionPage(items, None)


def position_of(row: Any) -> ExecutionPosition:
    return ExecutionPosition(row.fire_ts, row.execution_id)
