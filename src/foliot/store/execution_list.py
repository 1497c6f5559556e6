"""Lists of executions, a page at a time: exact whatever is asked for, in bounded time whatever there is.

Executions are found by indexes that firing pays little or nothing for, so none of them fits every question:

- those of given schedules, by fire time: three indexes, by what triggered them, merged;
- those that did not go well, by when they were made: an index of these alone;
- open ones: few as a rule, so they are gathered and sorted; where they are many, they are walked to;
- any others, by when they were made: a walk down the primary key.

What an index does not know is filtered on the way: a few hundred rows first, then more. A page that has
passed over `MAX_WALKED` rows is given as it is, short or even empty, and says where the next one goes on.
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

from foliot.model.errors import InvalidError
from foliot.model.execution import FINAL, OPEN, Execution, Status, TriggeredBy
from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH
from foliot.store.database import Database
from foliot.store.dialect import Dialect, Pool
from foliot.store.execution_rows import execution_of
from foliot.store.protocol import ExecutionFilter
from foliot.store.schema import (
    IS_BY_HAND,
    IS_LATE,
    IS_LATE_IN_SQLITE,
    IS_NOT_WELL,
    IS_OPEN,
    execution_t,
    schedule_t,
)
from foliot.store.types import Instant

MAX_SCHEDULES = 50
FIRST_WALKED = 500
MORE_WALKED = 8
"""How many times as many rows are read when those before had too little in them."""
MAX_WALKED = 100_000
"""In the order of the table, which takes PostgreSQL 65 ms and SQLite 220."""
MAX_SCATTERED = 20_000
"""Row limit of an index scan whose rows lie scattered over the table."""
MAX_GATHERED = 10_000
MAX_AT_ONCE = 1_000
"""Executions by hand that one schedule may have at one microsecond, for their list to be exact."""

NOT_WELL = FINAL - {Status.SUCCESS}
BODIES = ("args", "result", "traceback")

MARGIN = timedelta(hours=1)
"""How far the time in an execution's id may be from when it was really made."""
LATE = timedelta(days=1)
"""What was made longer than this after its fire time is in an index of its own."""

# Written out, so that PostgreSQL finds the partial indexes also for a statement that it has prepared.
_OF_SCHEDULES = {
    "triggered_by = 'scheduler'": {TriggeredBy.SCHEDULER},
    "triggered_by = 'backfill'": {TriggeredBy.BACKFILL},
    IS_BY_HAND: {TriggeredBy.API, TriggeredBy.MANUAL},
}
_IS_RUNNING = "status = 'running'"

_Conditions = tuple[ColumnElement[bool] | TextClause, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPosition:
    """Where a list goes on: behind this place. It has a meaning in every order that a list may have."""

    fire_ts: datetime
    execution_id: UUID


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    items: Sequence[Execution]
    next: ExecutionPosition | None
    """None: there is no more. A page that has a next one may be short."""


class ExecutionList:
    def __init__(
        self,
        database: Database,
        *,
        first_walked: int = FIRST_WALKED,
        most_walked: int = MAX_WALKED,
        most_gathered: int = MAX_GATHERED,
    ) -> None:
        self._database = database
        self._first_walked = first_walked
        self._most_walked = most_walked
        self._most_gathered = most_gathered

    async def page(
        self,
        wanted: ExecutionFilter,
        *,
        after: ExecutionPosition | None = None,
        limit: int = 50,
        with_bodies: bool = True,
        are_own: bool = False,
    ) -> ExecutionPage:
        """Those of given schedules by their fire time, others by when they were made; latest first.

        Raises InvalidError for too many schedules. Without bodies, args, result and traceback are None.
        `are_own`: the schedules are known to be the host's.
        """
        if len(set(wanted.schedule_ids)) > MAX_SCHEDULES:
            raise InvalidError.at("/schedule_id", "too_many", f"must be given at most {MAX_SCHEDULES} times")
        async with self._database.read(Pool.API) as connection:
            if wanted.schedule_ids and not are_own:
                wanted = replace(wanted, schedule_ids=await _own(connection, wanted))
                if not wanted.schedule_ids:
                    return ExecutionPage((), None)
            search = _Search(wanted, self._database.dialect, limit, self._most_gathered, with_bodies)
            found: list[Execution] = []
            walking, left = self._first_walked, min(self._most_walked, search.most_walked)
            while True:
                page, search = await search.find(connection, after, walking)
                found += page.items
                left -= walking
                if len(found) > limit:
                    return ExecutionPage(found[:limit], _position(found[limit - 1]))
                if page.next is None or len(found) == limit or left <= 0:
                    return ExecutionPage(found, page.next)
                after, walking = page.next, min(walking * MORE_WALKED, left)

    async def latest(
        self, wanted: ExecutionFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Execution]:
        """Latest executions as one list; `after` is the last execution of the list before."""
        position = None if after is None else await self._position_of(after)
        found: list[Execution] = []
        while len(found) < limit:
            page = await self.page(wanted, after=position, limit=limit - len(found))
            found += page.items
            if page.next is None:
                break
            position = page.next
        return found

    async def _position_of(self, execution_id: UUID) -> ExecutionPosition:
        statement = select(execution_t.c.fire_ts).where(execution_t.c.execution_id == execution_id)
        async with self._database.read(Pool.API) as connection:
            fire_ts = (await connection.execute(statement)).scalar_one_or_none()
        # One that has been pruned was older than all that are left.
        return ExecutionPosition(fire_ts or EPOCH, execution_id)


@dataclass(frozen=True, slots=True)
class _Source:
    """A range of one index."""

    conditions: _Conditions
    order: Sequence[ColumnElement[Any]]
    """Of the index. Naming it makes the planner take that index, whatever it expects to find in it."""
    statuses: Sequence[Status]
    """What is wanted of it."""
    has_ties: bool = False
    is_gathered: bool = False
    """Its order is not that of the list, so it must be read whole."""


@dataclass(frozen=True, slots=True)
class _Search:
    """How to find what is wanted."""

    wanted: ExecutionFilter
    dialect: Dialect
    limit: int
    most_gathered: int
    with_bodies: bool
    is_overfull: bool = False
    """What was to be gathered has turned out to be too much."""

    @property
    def most_walked(self) -> int:
        return MAX_SCATTERED if self._is_by_fire_time or self._is_rare else MAX_WALKED

    async def find(
        self, connection: AsyncConnection, after: ExecutionPosition | None, walking: int
    ) -> tuple[ExecutionPage, "_Search"]:
        """The next ones within so many rows, and how to go on."""
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

    # --- statements that are kept -----------------------------------------------------------------

    def _shape(self, after: ExecutionPosition | None, walking: int) -> "_Shape | None":
        """What the statement depends on; None: on more than is worth keeping it for."""
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

    # --- which indexes ----------------------------------------------------------------------------

    @property
    def _is_by_fire_time(self) -> bool:
        return bool(self.wanted.schedule_ids)

    @property
    def _is_rare(self) -> bool:
        """There are indexes of nothing but what has one of these statuses."""
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
        """Ranges of indexes that go on by id, as far as fire times allow."""
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
                is_late = IS_LATE_IN_SQLITE if self.dialect.name == "sqlite" else IS_LATE
                walks.append((text(is_late), *bounds, key >= highest))
        return [_Source(each, [key.desc()], statuses) for each in walks]

    def _walk_not_well(self, statuses: Sequence[Status], after: ExecutionPosition | None) -> list[_Source]:
        ranges = [self._has_status(status) for status in statuses]
        return self._walk_down(ranges, statuses, after) if statuses else []

    def _gather_not_well(self, statuses: Sequence[Status]) -> list[_Source]:
        """Of the whole host: the index knows no schedules."""
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
            # As few as the workers can take, also when a million wait.
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

    # --- reading them -----------------------------------------------------------------------------

    def _keys(self, sources: Sequence[_Source], after: ExecutionPosition | None, walking: int) -> Subquery:
        """The first of all that is read, and the row at which a source was left."""
        most = max(walking // len(sources), self.limit + 1)
        each = [self._read(number, source, most, after) for number, source in enumerate(sources)]
        read = (each[0] if len(each) == 1 else union_all(*each)).subquery("read")
        number = func.row_number().over(partition_by=read.c.source, order_by=self._order(read.c))
        numbered = select(read, number.label("number")).subquery("numbered")
        is_end = (numbered.c.number == numbered.c.most).label("is_end")
        is_overfull = and_(is_end, numbered.c.is_gathered)
        return (
            select(*[numbered.c[name] for name in ("execution_id", "fire_ts", "is_wanted", "is_gathered")])
            .add_columns(is_end)
            .where(or_(numbered.c.is_wanted, is_end))
            # Before all else, so that it is not missed.
            .order_by(is_overfull.desc(), *self._order(numbered.c))
            .limit(literally(self.limit + 1))
            .subquery("keys")
        )

    def _read(self, number: int, source: _Source, most: int, after: ExecutionPosition | None) -> Select[Any]:
        conditions = _conditions(replace(self.wanted, statuses=source.statuses))
        if source.is_gathered:
            most = self.most_gathered + 1
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
            first = _of_any_number(rows, most + (MAX_AT_ONCE if source.has_ties else 1))
        else:
            first = rows.limit(literally(most)).subquery("first")
        found = select(
            first,
            literally(number).label("source"),
            literally(most).label("most"),
            (true() if source.is_gathered else false()).label("is_gathered"),
        )
        # By fire time, an index can't tell where among those of one instant the last page ended.
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
    """Lists that are one statement, with other values."""

    has_host: bool
    schedules: int
    statuses: tuple[Status, ...]
    triggered_by: tuple[TriggeredBy, ...]
    has_after: bool
    walking: int
    search: _Search
    """For any executions."""


@lru_cache(maxsize=256)
def _kept(shape: _Shape) -> Select[Any]:
    """Made once: making it takes three times as long as running it."""
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


def _of_any_number(rows: Select[Any], most: int) -> Subquery:
    """The first rows by fire time, without PostgreSQL knowing how many until it runs.

    Of a schedule that has few rows as far as it knows, it would otherwise rather read and sort all, though
    by now there may be a million.
    """
    walked = rows.limit(select(literally(most)).scalar_subquery()).subquery("walked")
    return select(walked).order_by(walked.c.fire_ts.desc()).limit(literally(most)).subquery("first")


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
    """Where the ids of that time begin; None: no bound."""
    if instant is None:
        return None
    try:
        return first_id_at(max(instant + shift, EPOCH))
    except OverflowError:
        return None


def literally(number: int) -> BindParameter[int]:
    """In the statement's text, where the planner sees it also when the statement is prepared."""
    return bindparam(None, number, type_=Integer(), unique=True, literal_execute=True)


async def _own(connection: AsyncConnection, wanted: ExecutionFilter) -> list[UUID]:
    """Without the schedules of other hosts: nothing of theirs is even walked over."""
    ids = sorted(set(wanted.schedule_ids))
    if wanted.host_id is None:
        return ids
    statement = select(schedule_t.c.schedule_id).where(
        schedule_t.c.schedule_id.in_(ids), schedule_t.c.host_id != wanted.host_id
    )
    foreign = frozenset((await connection.execute(statement)).scalars())
    return [each for each in ids if each not in foreign]


def _page_of(rows: Sequence[Any], limit: int) -> ExecutionPage:
    items: list[Execution] = []
    for row in rows:
        if row.is_wanted:
            if len(items) == limit:
                return ExecutionPage(items, _position(items[-1]))
            items.append(execution_of(row))
        if row.is_end:
            return ExecutionPage(items, _position(row))
    return ExecutionPage(items, None)


def _position(row: Any) -> ExecutionPosition:
    return ExecutionPosition(row.fire_ts, row.execution_id)
