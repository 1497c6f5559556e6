"""Lists of schedules, a page at a time, each with its last run.

Sorted by name or by next run, a page is a range of an index. The other orders read and sort all schedules of
the host: 100,000 take PostgreSQL 60 to 110 ms. An index for them would have to be written with every firing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache, lru_cache
from types import NoneType
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    String,
    Subquery,
    Table,
    Uuid,
    and_,
    bindparam,
    literal,
    or_,
    select,
    union_all,
)

from foliot.db.dialect import Dialect, Pool
from foliot.db.rows.schedule_rows import schedule_of
from foliot.db.rows.search_rows import is_found, is_short
from foliot.db.statements import Statements
from foliot.db.tables.schedules import schedule_status_t, schedule_t, schedule_text_t
from foliot.model.errors import InvalidError, NotFoundError, UnreadableError
from foliot.model.execution import Status
from foliot.model.policy import Priority
from foliot.model.schedule import ManagedBy, Schedule, ScheduleState
from foliot.queries.execution_search import literally

_Conditions = tuple[ColumnElement[bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules to list. All given conditions must hold; of several values, any may match."""

    host_id: UUID
    names: Sequence[str] = ()
    q: str = ""
    """Part of the name or of the description, case-insensitive."""
    active: bool | None = None
    queues: Sequence[str] = ()
    priorities: Sequence[Priority] = ()
    targets: Sequence[str] = ()
    """Kinds of target."""
    last_statuses: Sequence[Status] = ()
    states: Sequence[ScheduleState] = ()
    managed_by: Sequence[ManagedBy] = ()
    calendars: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """A schedule must have all of them."""


class ScheduleSort(StrEnum):
    NAME = "name"
    NEXT_RUN = "next_run_ts"
    CREATED = "created_ts"
    UPDATED = "updated_ts"
    LAST_RUN = "last_run_ts"


@dataclass(frozen=True, slots=True)
class SchedulePosition:
    """Cursor of a list: continue behind this place, even if the schedule is gone."""

    value: str | datetime | None
    """The value that the list is sorted by."""
    schedule_id: UUID


@dataclass(frozen=True, slots=True)
class ListedSchedule:
    """A schedule and its last run. All None: it has never run."""

    schedule: Schedule
    last_run_ts: datetime | None
    last_status: Status | None
    last_execution_id: UUID | None


@dataclass(frozen=True, slots=True)
class SchedulePage:
    items: Sequence[ListedSchedule]
    next: SchedulePosition | None
    """Cursor of the next page. None: there are no more."""


@dataclass(frozen=True, slots=True)
class ScheduleReference:
    """What a bulk change needs to know of each schedule."""

    schedule_id: UUID
    name: str
    aggregate_version: int


class ScheduleList(Statements):
    async def page(
        self,
        wanted: ScheduleFilter,
        *,
        sort: ScheduleSort = ScheduleSort.NAME,
        is_descending: bool = False,
        after: SchedulePosition | None = None,
        limit: int = 50,
    ) -> SchedulePage:
        """Return a page, without deleted schedules. Those without a sort value come last in both directions.

        A schedule that is changed between two pages may move; the others keep their place. Raises
        InvalidError if `after` belongs to another sort order.
        """
        if after is not None:
            _require_fit(sort, after)
        order = _Order(sort, is_descending, after, limit)
        rows: list[Any] = []
        async with self._database.read(Pool.API) as connection:
            for statement, values in self._statements(order, wanted):
                rows += (await connection.execute(statement, values)).all()
                if len(rows) > limit:
                    break
        items = list(_readable(rows[:limit]))
        last = (
            SchedulePosition(rows[limit - 1].sorted_by, rows[limit - 1].schedule_id) if rows[limit:] else None
        )
        return SchedulePage(items, last)

    def _statements(
        self, order: "_Order", wanted: ScheduleFilter
    ) -> Iterator[tuple[Select[Any], dict[str, Any]]]:
        """Yield the statements of a page with their values.

        Nearly all lists are sorted by name: of all schedules, of a few names, searched, or by last status.
        Their statements are cached.
        """
        rest = replace(wanted, q="", names=(), last_statuses=())
        is_by_name = order.sort is ScheduleSort.NAME and not (wanted.q and wanted.last_statuses)
        if is_by_name and rest == ScheduleFilter(host_id=wanted.host_id):
            shape = _Shape(
                order.is_descending,
                order.after is not None,
                order.limit,
                wanted.q != "",
                is_short(wanted.q),
                bool(wanted.names),
                bool(wanted.last_statuses),
            )
            values: dict[str, Any] = {"of_host": wanted.host_id}
            if order.after is not None:
                values["after_name"] = order.after.value
            if wanted.q:
                values["part"] = wanted.q.lower()
            if wanted.names:
                values["names"] = list(wanted.names)
            if wanted.last_statuses:
                values["last_statuses"] = [each.value for each in wanted.last_statuses]
            yield _kept(self._dialect, shape), values
            return
        ways = order.ways(_conditions(self._dialect, wanted), wanted.priorities or list(Priority))
        yield from ((order.rows(keys), {}) for keys in ways)

    async def ids(
        self, wanted: ScheduleFilter, *, after_name: str = "", limit: int
    ) -> list[ScheduleReference]:
        """Return ids, names and versions of matching schedules, in order of name."""
        table = schedule_t
        statement = (
            select(table.c.schedule_id, table.c.schedule_name, table.c.aggregate_version)
            .select_from(_with_status(table))
            .where(*_conditions(self._dialect, wanted), table.c.schedule_name > after_name)
            .order_by(table.c.schedule_name)
            .limit(literally(limit))
        )
        return [ScheduleReference(*row) for row in await self._database.fetch(Pool.API, statement)]

    async def by_names(self, host_id: UUID, names: Sequence[str]) -> list[ListedSchedule]:
        """Return the existing schedules with these names, in order of name. Any number of names."""
        named = self._dialect.rows("named", {"name": String()}, [(name,) for name in sorted(set(names))])
        statement = (
            _listed(named.join(schedule_t, schedule_t.c.schedule_name == named.c.name))
            .where(schedule_t.c.host_id == host_id, schedule_t.c.deleted_ts.is_(None))
            .order_by(schedule_t.c.schedule_name)
        )
        return [_listed_of(row) for row in await self._database.fetch(Pool.API, statement)]

    async def get_with_status(self, schedule_id: UUID, host_id: UUID) -> ListedSchedule:
        """Return a schedule with its last run. Raises NotFoundError, also if deleted or of another host."""
        wanted = {"wanted_schedule": schedule_id, "wanted_host": host_id}
        row = (await self._database.fetch(Pool.API, _get(), wanted)).one_or_none()
        if row is None:
            raise NotFoundError("schedule", schedule_id)
        return _listed_of(row)


# --- orders ------------------------------------------------------------------------------------------------

_COLUMNS: Mapping[ScheduleSort, ColumnElement[Any]] = {
    ScheduleSort.NAME: schedule_t.c.schedule_name,
    ScheduleSort.NEXT_RUN: schedule_t.c.next_run_ts,
    ScheduleSort.CREATED: schedule_t.c.created_ts,
    ScheduleSort.UPDATED: schedule_t.c.updated_ts,
    ScheduleSort.LAST_RUN: schedule_status_t.c.last_run_ts,
}


def _require_fit(sort: ScheduleSort, after: SchedulePosition) -> None:
    kinds = {
        ScheduleSort.NAME: (str,),
        ScheduleSort.NEXT_RUN: (datetime, NoneType),
        ScheduleSort.CREATED: (datetime,),
        ScheduleSort.UPDATED: (datetime,),
        ScheduleSort.LAST_RUN: (datetime, NoneType),
    }
    if not isinstance(after.value, kinds[sort]):
        raise InvalidError.at("/page_token", "other_order", f"is of a list that is not sorted by {sort}")


@dataclass(frozen=True, slots=True)
class _Order:
    """The sort order of a list, and the start of its page."""

    sort: ScheduleSort
    is_descending: bool
    after: SchedulePosition | None
    limit: int

    def ways(self, conditions: _Conditions, priorities: Sequence[Priority]) -> Iterator[Subquery]:
        """Yield queries for the keys of the page. The second is needed only if the first returns too few."""
        if self.sort is not ScheduleSort.NEXT_RUN:
            yield self._first((*conditions, *self._bounds())).subquery("keys")
            return
        due = schedule_t.c.next_run_ts
        if self.after is None or self.after.value is not None:
            # The index is sorted per priority.
            each = [
                self._first(
                    (*conditions, *self._bounds(), due.is_not(None), schedule_t.c.priority == priority.value)
                ).subquery(f"of_{priority}")
                for priority in sorted(set(priorities))
            ]
            merged = union_all(*[select(one) for one in each]).subquery("merged")
            order = self._by(merged.c.sorted_by, merged.c.schedule_id)
            yield select(merged).order_by(*order).limit(literally(self.limit + 1)).subquery("keys")
        bounds = self._bounds() if self.after is not None and self.after.value is None else ()
        yield self._first((*conditions, *bounds, due.is_(None))).subquery("keys")

    def rows(self, keys: Subquery) -> Select[Any]:
        order = self._by(keys.c.sorted_by, keys.c.schedule_id)
        found = keys.join(schedule_t, schedule_t.c.schedule_id == keys.c.schedule_id)
        return _listed(found).add_columns(keys.c.sorted_by).order_by(*order)

    def _first(self, conditions: _Conditions) -> Select[Any]:
        column = _COLUMNS[self.sort]
        return (
            select(schedule_t.c.schedule_id, column.label("sorted_by"))
            .select_from(_with_status(schedule_t))
            .where(*conditions)
            .order_by(*self._by(column, schedule_t.c.schedule_id))
            .limit(literally(self.limit + 1))
        )

    def _by(self, value: ColumnElement[Any], schedule_id: ColumnElement[Any]) -> Sequence[ColumnElement[Any]]:
        order = [each.desc() if self.is_descending else each.asc() for each in (value, schedule_id)]
        if self.sort is ScheduleSort.NAME:
            # Names are unique, and a second sort key would prevent use of the index.
            return order[:1]
        return [order[0].nulls_last(), order[1]] if self.sort is ScheduleSort.LAST_RUN else order

    def _bounds(self) -> _Conditions:
        if self.after is None:
            return ()
        column, key = _COLUMNS[self.sort], schedule_t.c.schedule_id
        value, schedule_id = self.after.value, self.after.schedule_id
        is_behind = key < schedule_id if self.is_descending else key > schedule_id
        if value is None:
            return (column.is_(None), is_behind)
        is_beyond = column < value if self.is_descending else column > value
        if self.sort is ScheduleSort.NAME:
            return (is_beyond,)
        if self.sort is ScheduleSort.LAST_RUN:
            return (or_(is_beyond, and_(column == value, is_behind), column.is_(None)),)
        # Written so that the first condition is a range of an index.
        is_near = column <= value if self.is_descending else column >= value
        return (is_near, or_(is_beyond, is_behind))


class _Shape(NamedTuple):
    """Lists by name with the same statement and different values."""

    is_descending: bool
    has_after: bool
    limit: int
    is_searched: bool
    is_short: bool
    has_names: bool
    has_last_statuses: bool


@lru_cache(maxsize=256)
def _kept(dialect: Dialect, shape: _Shape) -> Select[Any]:
    """Return the cached statement, because building it takes three times as long as running it."""
    host = bindparam("of_host", type_=Uuid())
    if shape.is_searched:
        # A search without other conditions reads only the table of search texts.
        table: Table = schedule_text_t
        part = bindparam("part", type_=String())
        conditions = list(is_found(dialect, host, part, is_short=shape.is_short))
    else:
        table = schedule_t
        conditions = [table.c.host_id == host, table.c.deleted_ts.is_(None)]
    name = table.c.schedule_name
    if shape.has_after:
        after = bindparam("after_name", type_=String())
        conditions.append(name < after if shape.is_descending else name > after)
    if shape.has_names:
        conditions.append(name.in_(bindparam("names", expanding=True)))
    source: FromClause = table
    if shape.has_last_statuses:
        source = _with_status(table)
        conditions.append(schedule_status_t.c.last_status.in_(bindparam("last_statuses", expanding=True)))
    keys = (
        select(table.c.schedule_id, name.label("sorted_by"))
        .select_from(source)
        .where(*conditions)
        .order_by(name.desc() if shape.is_descending else name.asc())
        .limit(literally(shape.limit + 1))
        .subquery("keys")
    )
    return _Order(ScheduleSort.NAME, shape.is_descending, None, shape.limit).rows(keys)


# --- rows --------------------------------------------------------------------------------------------------


def _conditions(dialect: Dialect, wanted: ScheduleFilter) -> _Conditions:
    table = schedule_t
    conditions: list[ColumnElement[bool]] = [table.c.host_id == wanted.host_id, table.c.deleted_ts.is_(None)]
    for column, values in (
        (table.c.schedule_name, wanted.names),
        (table.c.queue, wanted.queues),
        (table.c.priority, [each.value for each in wanted.priorities]),
        (table.c.target["kind"].as_string(), wanted.targets),
        (table.c.state, [each.value for each in wanted.states]),
        (table.c.managed_by, [each.value for each in wanted.managed_by]),
        (schedule_status_t.c.last_status, [each.value for each in wanted.last_statuses]),
    ):
        if values:
            conditions.append(column.in_(values))
    if wanted.q:
        part = wanted.q.lower()
        is_wanted = is_found(dialect, literal(wanted.host_id), literal(part), is_short=is_short(part))
        found = select(schedule_text_t.c.schedule_id).where(*is_wanted)
        conditions.append(table.c.schedule_id.in_(found))
    if wanted.active is not None:
        conditions.append(table.c.active.is_(wanted.active))
    if wanted.calendars:
        conditions.append(
            or_(*[dialect.has_item(table.c.policies, "calendars", name) for name in wanted.calendars])
        )
    conditions += [dialect.has_value(table.c.labels, name, value) for name, value in wanted.labels.items()]
    return tuple(conditions)


def _listed(schedules: FromClause) -> Select[Any]:
    status = schedule_status_t
    return select(
        schedule_t, status.c.last_run_ts, status.c.last_status, status.c.last_execution_id
    ).select_from(_with_status(schedules))


def _with_status(schedules: FromClause) -> FromClause:
    return schedules.outerjoin(schedule_status_t, schedule_status_t.c.schedule_id == schedule_t.c.schedule_id)


@cache
def _get() -> Select[Any]:
    """Return the cached statement, because building it takes longer than running it."""
    return _listed(schedule_t).where(
        schedule_t.c.schedule_id == bindparam("wanted_schedule"),
        schedule_t.c.host_id == bindparam("wanted_host"),
        schedule_t.c.deleted_ts.is_(None),
    )


def _readable(rows: Sequence[Any]) -> Iterator[ListedSchedule]:
    """Yield the readable schedules. Those that only a newer version can read are left out."""
    for row in rows:
        with suppress(UnreadableError):
            yield _listed_of(row)


def _listed_of(row: Any) -> ListedSchedule:
    return ListedSchedule(
        schedule=schedule_of(row),
        last_run_ts=row.last_run_ts,
        last_status=None if row.last_status is None else Status(row.last_status),
        last_execution_id=row.last_execution_id,
    )
