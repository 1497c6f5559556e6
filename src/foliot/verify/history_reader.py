"""Read the history from a snapshot, in pages, and only the columns that are needed.

Rows are found by schedule and fire time, with the unique index of scheduled rows. So the cost depends on the
checked span, not on the length of the history.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import FromClause, Select, Uuid, and_, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Dialect, Pool
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import calendar_t, schedule_t, schedule_version_t
from foliot.verify.finding import VerifiedSpan
from foliot.verify.history import SKIPPED, CurrentState, Row, StoredHistory, VersionPeriod
from foliot.verify.policy_checks import CalendarDays, Calendars

SCHEDULES_PER_PAGE = 100
ROWS_PER_PAGE = 50_000
_IS_SCHEDULED = "triggered_by = 'scheduler'"
"""A literal, not a parameter: otherwise PostgreSQL would not use the partial index in prepared statements."""

_ROW = (
    execution_t.c.fire_ts,
    execution_t.c.missed_count,
    execution_t.c.missed_from_ts,
    execution_t.c.status,
    execution_t.c.reason,
    execution_t.c.aggregate_version,
    execution_t.c.created_ts,
    execution_t.c.scheduler_instance_id,
)


@asynccontextmanager
async def snapshot(database: Database) -> AsyncIterator[AsyncConnection]:
    """Open a connection that reads from one snapshot, whatever is written meanwhile."""
    async with database.engine(Pool.API).connect() as connection:
        yield await connection.execution_options(**database.dialect.snapshot_options)


async def read_calendars(connection: AsyncConnection) -> Calendars:
    statement = select(
        calendar_t.c.host_id, calendar_t.c.calendar_name, calendar_t.c.document, calendar_t.c.updated_ts
    )
    return {
        (row.host_id, row.calendar_name): CalendarDays(row.document, row.updated_ts)
        for row in await connection.execute(statement)
    }


async def read_histories(
    connection: AsyncConnection, dialect: Dialect, span: VerifiedSpan, *, is_to_the_end: bool
) -> AsyncIterator[StoredHistory]:
    """Yield every schedule that existed within the span, ordered by id."""
    last_id: UUID | None = None
    while True:
        page = await _schedules(connection, span, last_id)
        if not page:
            return
        wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each.schedule_id,) for each in page])
        versions = await _versions(connection, wanted, span)
        rows = await _rows(connection, wanted, span, is_to_the_end=is_to_the_end)
        before = await _rows_before(connection, wanted, span)
        after = {} if is_to_the_end else await _fired_after(connection, wanted, span)
        for standing in page:
            key = standing.schedule_id
            yield StoredHistory(
                standing, versions.get(key, ()), rows.get(key, ()), before.get(key), after.get(key, 0)
            )
        last_id = page[-1].schedule_id


async def _schedules(
    connection: AsyncConnection, span: VerifiedSpan, after: UUID | None
) -> list[CurrentState]:
    table = schedule_t
    statement = (
        select(
            table.c.schedule_id,
            table.c.host_id,
            table.c.schedule_name,
            table.c.next_fire_ts,
            table.c.run_count,
        )
        .where(
            or_(table.c.deleted_ts.is_(None), table.c.deleted_ts >= span.first),
            table.c.created_ts <= span.last,
        )
        .order_by(table.c.schedule_id)
        .limit(SCHEDULES_PER_PAGE)
    )
    if after is not None:
        statement = statement.where(table.c.schedule_id > after)
    return [CurrentState._make(row) for row in await connection.execute(statement)]


async def _versions(
    connection: AsyncConnection, wanted: FromClause, span: VerifiedSpan
) -> dict[UUID, list[VersionPeriod]]:
    table = schedule_version_t
    statement = (
        select(
            table.c.schedule_id,
            table.c.aggregate_version,
            table.c.change,
            table.c.document,
            table.c.paused,
            table.c.paused_until_ts,
            table.c.effective_ts,
            table.c.created_ts,
        )
        .join(wanted, wanted.c.schedule_id == table.c.schedule_id)
        .where(table.c.created_ts <= span.last)
        .order_by(table.c.schedule_id, table.c.aggregate_version)
    )
    return _grouped((await connection.execute(statement)).all(), VersionPeriod._make)


async def _rows(
    connection: AsyncConnection, wanted: FromClause, span: VerifiedSpan, *, is_to_the_end: bool
) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    statement = _select_rows(wanted, span, is_to_the_end=is_to_the_end).limit(ROWS_PER_PAGE)
    # If the unique index is missing, two rows may have one fire time. So the cursor includes the id.
    key = (execution_t.c.schedule_id, execution_t.c.fire_ts, execution_t.c.execution_id)
    page = (await connection.execute(statement)).all()
    while page:
        for schedule_id, rows in _grouped(page, lambda row: Row._make(row[:-1])).items():
            found.setdefault(schedule_id, []).extend(rows)
        if len(page) < ROWS_PER_PAGE:
            break
        last = page[-1]
        schedule_id, fire_ts, execution_id = last[0], last[1], last[-1]
        beyond = or_(
            key[0] > schedule_id,
            and_(key[0] == schedule_id, key[1] > fire_ts),
            and_(key[0] == schedule_id, key[1] == fire_ts, key[2] > execution_id),
        )
        page = (await connection.execute(statement.where(beyond))).all()
    return found


def _select_rows(wanted: FromClause, span: VerifiedSpan, *, is_to_the_end: bool) -> Select[Any]:
    table = execution_t
    statement = (
        select(table.c.schedule_id, *_ROW, table.c.execution_id)
        .join(wanted, wanted.c.schedule_id == table.c.schedule_id)
        .where(text(_IS_SCHEDULED), table.c.fire_ts >= span.first)
        .order_by(table.c.schedule_id, table.c.fire_ts, table.c.execution_id)
    )
    if is_to_the_end:
        return statement
    # A row with a fire time after the span may decide missed times within it.
    return statement.where(or_(table.c.fire_ts <= span.last, table.c.missed_from_ts <= span.last))


async def _fired_after(
    connection: AsyncConnection, wanted: FromClause, span: VerifiedSpan
) -> dict[UUID, int]:
    """Return how often each schedule fired after the span, without rows that decide times within it."""
    table = execution_t
    statement = (
        select(table.c.schedule_id, func.count())
        .join(wanted, wanted.c.schedule_id == table.c.schedule_id)
        .where(
            text(_IS_SCHEDULED),
            table.c.fire_ts > span.last,
            or_(table.c.missed_from_ts.is_(None), table.c.missed_from_ts > span.last),
            table.c.status != SKIPPED,
        )
        .group_by(table.c.schedule_id)
    )
    return {row[0]: row[1] for row in await connection.execute(statement)}


async def _rows_before(
    connection: AsyncConnection, wanted: FromClause, span: VerifiedSpan
) -> dict[UUID, Row]:
    """Return each schedule's last row before the span: the schedule may have stopped with it."""
    table, earlier = execution_t, execution_t.alias("earlier")
    latest = (
        select(func.max(earlier.c.fire_ts))
        .where(
            earlier.c.schedule_id == wanted.c.schedule_id,
            text(f"earlier.{_IS_SCHEDULED}"),
            earlier.c.fire_ts < span.first,
        )
        .correlate(wanted)
        .scalar_subquery()
    )
    statement = (
        select(table.c.schedule_id, *_ROW)
        .select_from(wanted.join(table, table.c.schedule_id == wanted.c.schedule_id))
        .where(text(f"execution_t.{_IS_SCHEDULED}"), table.c.fire_ts == latest)
    )
    return {row[0]: Row._make(row[1:]) for row in await connection.execute(statement)}


def _grouped(rows: Sequence[Any], make: Any) -> dict[UUID, list[Any]]:
    return {key: [make(row[1:]) for row in group] for key, group in groupby(rows, key=itemgetter(0))}


async def oldest_kept(connection: AsyncConnection) -> datetime | None:
    """Return when the oldest stored execution was created. None: there is none."""
    oldest = select(execution_t.c.created_ts).order_by(execution_t.c.execution_id).limit(1)
    found: datetime | None = (await connection.execute(oldest)).scalar_one_or_none()
    return found


async def first_change(connection: AsyncConnection) -> datetime | None:
    """Return when the first version of any schedule was created. None: there is none."""
    found: datetime | None = (
        await connection.execute(select(func.min(schedule_version_t.c.created_ts)))
    ).scalar_one()
    return found
