"""Queries of the notifier for missing runs: state of schedules, when they were due, and their successes.

One query covers a whole page of schedules, for any number of rules. Runs are found by their fire time.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, String, Uuid, and_, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect, Pool
from foliot.db.statements import Statements
from foliot.db.tables.executions import IS_BY_HAND, execution_t
from foliot.db.tables.schedules import schedule_status_t, schedule_t, schedule_version_t
from foliot.db.types import Instant
from foliot.model.execution import SkipReason, Status
from foliot.model.incident import Run, Subject, VersionStart
from foliot.notifications.observed_rows import run_of, select_seen, subject_of, wanted_schedules

LONGEST_RUN = timedelta(hours=1)
"""A run with a fire time up to this long before a span is checked too: it may have ended in the span."""
MAX_VERSIONS = 100
"""How many versions of a schedule are searched for the last change that restarted it."""
IS_BY_SCHEDULE = "triggered_by = 'scheduler'"
_NOT_DUE = tuple(
    each.value
    for each in (
        SkipReason.WINDOW,
        SkipReason.CALENDAR,
        SkipReason.PAUSED,
        SkipReason.INACTIVE,
        SkipReason.DELETED,
    )
)
"""Reasons of skipped times that were not supposed to run."""


class WatchedSchedule(NamedTuple):
    """Current state of a schedule."""

    subject: Subject
    last: Run | None
    next_fire_ts: datetime | None
    created_ts: datetime
    paused_until_ts: datetime | None


class SearchStart(NamedTuple):
    """A schedule, and the instant from which to search."""

    schedule_id: UUID
    since_ts: datetime


class ScheduleWindow(NamedTuple):
    """A schedule, and the time span to search, both ends inclusive."""

    schedule_id: UUID
    from_ts: datetime
    until_ts: datetime


class Success(NamedTuple):
    execution_id: UUID
    ended_ts: datetime


class MissedRunQueries(Statements):
    async def standings(
        self,
        host_id: UUID,
        now: datetime,
        *,
        named: Collection[str] | None = None,
        after_name: str = "",
        limit: int,
    ) -> list[WatchedSchedule]:
        """Return a page of a host's schedules in order of name. `named`: names or ids; None: all."""
        status, last = schedule_status_t, execution_t
        statement = (
            select_seen(schedule_t.c.next_fire_ts, schedule_t.c.created_ts.label("made_ts"))
            .select_from(
                schedule_t.outerjoin(status, status.c.schedule_id == schedule_t.c.schedule_id).outerjoin(
                    last, last.c.execution_id == status.c.last_execution_id
                )
            )
            .where(
                schedule_t.c.host_id == host_id,
                schedule_t.c.deleted_ts.is_(None),
                schedule_t.c.schedule_name > after_name,
            )
            .order_by(schedule_t.c.schedule_name)
            .limit(limit)
        )
        if named is not None:
            names = self._dialect.rows("names", {"name": String()}, [(each,) for each in named])
            ids = wanted_schedules(
                self._dialect, [key for each in named if (key := _id_of(each)) is not None]
            )
            statement = statement.where(
                or_(
                    schedule_t.c.schedule_name.in_(select(names.c.name)),
                    schedule_t.c.schedule_id.in_(select(ids.c.schedule_id)),
                )
            )
        rows = (await self._database.fetch(Pool.FIRING, statement)).all()
        return [
            WatchedSchedule(
                subject_of(row, now),
                None if row.execution_id is None else run_of(row),
                row.next_fire_ts,
                row.made_ts,
                row.paused_until_ts,
            )
            for row in rows
        ]

    async def versions(self, schedule_ids: Collection[UUID]) -> dict[UUID, list[VersionStart]]:
        """Return the latest versions of each schedule, oldest first."""
        if not schedule_ids:
            return {}
        table, wanted = schedule_version_t, wanted_schedules(self._dialect, schedule_ids)
        document = table.c.document
        statement = (
            select(
                table.c.schedule_id,
                table.c.created_ts,
                table.c.paused,
                table.c.paused_until_ts,
                table.c.effective_ts,
                document["active"].as_boolean().label("is_active"),
                document["end_ts"].as_string().label("end_ts"),
                document["max_runs"].as_string().label("max_runs"),
            )
            .select_from(
                wanted.join(schedule_t, schedule_t.c.schedule_id == wanted.c.schedule_id).join(
                    table,
                    and_(
                        table.c.schedule_id == schedule_t.c.schedule_id,
                        table.c.aggregate_version > schedule_t.c.aggregate_version - MAX_VERSIONS,
                    ),
                )
            )
            .order_by(table.c.schedule_id, table.c.aggregate_version)
        )
        found: dict[UUID, list[VersionStart]] = {}
        async with self._database.read(Pool.FIRING) as connection:
            for row in await connection.execute(statement):
                timing = (row.effective_ts, row.end_ts, row.max_runs)
                version = VersionStart(
                    row.created_ts, row.paused, row.paused_until_ts, row.is_active is not False, timing
                )
                found.setdefault(row.schedule_id, []).append(version)
        return found

    async def successes(self, wanted: Collection[SearchStart], now: datetime) -> dict[SearchStart, Success]:
        """Return the first success of each since then, until `now`. Backfills do not count."""
        if not wanted:
            return {}
        async with self._database.read(Pool.FIRING) as connection:
            return await first_successes(connection, self._dialect, wanted, now)

    async def first_fires(self, wanted: Collection[SearchStart]) -> dict[SearchStart, datetime]:
        """Return the first decided fire time of each since then. Missed times count too."""
        if not wanted:
            return {}
        table = execution_t
        given = self._dialect.rows(
            "wanted", {"schedule_id": Uuid(), "since_ts": Instant()}, [tuple(each) for each in wanted]
        )
        first = (
            select(table.c.execution_id, table.c.schedule_id, table.c.fire_ts, table.c.missed_from_ts)
            .where(
                table.c.schedule_id == given.c.schedule_id,
                text(IS_BY_SCHEDULE),
                table.c.fire_ts >= given.c.since_ts,
            )
            .order_by(table.c.fire_ts)
            .limit(1)
            .correlate(given)
        )
        statement = self._dialect.of_each(given, first, table.c.execution_id)
        rows = await self._read(statement.add_columns(given.c.since_ts))
        return {SearchStart(row.schedule_id, row.since_ts): row.missed_from_ts or row.fire_ts for row in rows}

    async def latest_due(self, spans: Collection[ScheduleWindow]) -> dict[ScheduleWindow, datetime]:
        """Return the latest time in each span that should have run, whatever its outcome."""
        if not spans:
            return {}
        table = execution_t
        given = self._dialect.rows(
            "wanted",
            {"schedule_id": Uuid(), "from_ts": Instant(), "until_ts": Instant()},
            [tuple(each) for each in spans],
        )
        first = (
            select(table.c.execution_id, table.c.schedule_id, table.c.fire_ts)
            .where(
                table.c.schedule_id == given.c.schedule_id,
                text(IS_BY_SCHEDULE),
                table.c.fire_ts >= given.c.from_ts,
                table.c.fire_ts <= given.c.until_ts,
                or_(table.c.reason.is_(None), table.c.reason.not_in(_NOT_DUE)),
            )
            .order_by(table.c.fire_ts.desc())
            .limit(1)
            .correlate(given)
        )
        statement = self._dialect.of_each(given, first, table.c.execution_id)
        rows = await self._read(statement.add_columns(given.c.from_ts, given.c.until_ts))
        return {ScheduleWindow(row.schedule_id, row.from_ts, row.until_ts): row.fire_ts for row in rows}

    async def _read(self, statement: Select[Any]) -> Sequence[Any]:
        rows: Sequence[Any] = (await self._database.fetch(Pool.FIRING, statement)).all()
        return rows


async def first_successes(
    connection: AsyncConnection, dialect: Dialect, wanted: Collection[SearchStart], now: datetime
) -> dict[SearchStart, Success]:
    """Return the first success of each. Oldest first, so that failures after a success are not read."""
    table = execution_t
    given = dialect.rows(
        "wanted",
        {"schedule_id": Uuid(), "since_ts": Instant(), "from_ts": Instant()},
        [(*each, each.since_ts - LONGEST_RUN) for each in wanted],
    )
    found: dict[SearchStart, Success] = {}
    for kind in (IS_BY_SCHEDULE, IS_BY_HAND):
        first = (
            select(table.c.execution_id, table.c.schedule_id, table.c.ended_ts)
            .where(
                table.c.schedule_id == given.c.schedule_id,
                text(kind),
                table.c.fire_ts >= given.c.from_ts,
                table.c.status == Status.SUCCESS.value,
                table.c.ended_ts >= given.c.since_ts,
                table.c.ended_ts <= now,
            )
            .order_by(table.c.fire_ts)
            .limit(1)
            .correlate(given)
        )
        statement = dialect.of_each(given, first, table.c.execution_id).add_columns(given.c.since_ts)
        for row in await connection.execute(statement):
            since = SearchStart(row.schedule_id, row.since_ts)
            if since not in found or row.ended_ts > found[since].ended_ts:
                found[since] = Success(row.execution_id, row.ended_ts)
    return found


def _id_of(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None
