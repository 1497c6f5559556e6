"""What the notifier sees of schedules and executions: reads alone, each bounded, and by an index.

Firing, claiming and settling write nothing for it. What has failed is found by an index that only failures
are in; how a schedule stands, by its row in `schedule_status_t`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import FromClause, Select, String, Uuid, and_, func, or_, select, text

from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.incident import FAILING, Run, Subject
from foliot.model.schedule import ChangeKind, ScheduleState
from foliot.store.database import Database
from foliot.store.dialect import Dialect, Pool
from foliot.store.schema import (
    IS_BY_HAND,
    IS_CLAIMABLE,
    IS_FAILED,
    execution_t,
    queue_t,
    schedule_status_t,
    schedule_t,
    schedule_version_t,
)
from foliot.store.types import Instant

LONGEST_RUN = timedelta(hours=1)
"""How long before a span a run may have been due, to be looked at for having ended in it."""
_BY_SCHEDULE = "triggered_by = 'scheduler'"
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
"""Times that were not to run."""
_SUBJECT = (
    "schedule_id",
    "host_id",
    "schedule_name",
    "labels",
    "paused",
    "paused_until_ts",
    "deleted_ts",
    "active",
    "state",
)
_RUN = (
    "execution_id",
    "status",
    "attempt",
    "triggered_by",
    "fire_ts",
    "started_ts",
    "ended_ts",
    "due_by_ts",
    "error",
)


class Seen(NamedTuple):
    """An execution, and its schedule as it stands now."""

    subject: Subject
    run: Run


class Standing(NamedTuple):
    """How a schedule stands."""

    subject: Subject
    last: Run | None
    next_fire_ts: datetime | None
    created_ts: datetime
    paused_until_ts: datetime | None


class Sightings:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    # --- what went wrong -------------------------------------------------------------------------------

    async def failures(
        self,
        hosts: Collection[UUID],
        now: datetime,
        *,
        since: datetime,
        after: UUID | None = None,
        limit: int,
    ) -> list[Seen]:
        """What has failed from then on until now, oldest end first; of that very instant, those behind
        `after`."""
        table = execution_t
        is_behind = table.c.ended_ts >= since
        if after is not None:
            is_behind = or_(
                table.c.ended_ts > since, and_(table.c.ended_ts == since, table.c.execution_id > after)
            )
        statement = (
            select_seen()
            .where(
                text(f"execution_t.{IS_FAILED}"),
                table.c.ended_ts >= since,
                table.c.ended_ts <= now,
                is_behind,
                self._of(hosts),
            )
            .order_by(table.c.ended_ts, table.c.execution_id)
            .limit(limit)
        )
        return await self._read_seen(statement, now)

    async def late(
        self, hosts: Collection[UUID], now: datetime, *, since: datetime, limit: int
    ) -> list[Seen]:
        """Executions that wait past the time they should have started by, since then; and those that run,
        and were started too late. What waits in a paused queue is not late."""
        table = execution_t
        first = (
            select(table.c.execution_id)
            .where(
                table.c.host_id == queue_t.c.host_id,
                table.c.queue == queue_t.c.queue,
                text(IS_CLAIMABLE),
                table.c.due_by_ts >= since,
                table.c.due_by_ts < now,
            )
            .order_by(table.c.due_by_ts)
            .limit(limit)
            .correlate(queue_t)
        )
        wanted = self._hosts(hosts)
        places = queue_t.join(wanted, and_(wanted.c.host_id == queue_t.c.host_id, ~queue_t.c.paused))
        waiting = self._dialect.of_each(places, first, table.c.execution_id).limit(limit)
        running = (
            select(table.c.execution_id)
            .where(
                table.c.status == text("'running'"),
                table.c.started_ts > table.c.due_by_ts,
                table.c.started_ts >= since,
                # By which it is found: what is not lost has a lease that has not run out.
                table.c.lease_until >= since,
                self._of(hosts),
            )
            .limit(limit)
        )
        async with self._database.read(Pool.FIRING) as connection:
            ids = list((await connection.execute(waiting)).scalars())
            ids += (await connection.execute(running)).scalars()
        if not ids:
            return []
        given = self._dialect.rows("given", {"execution_id": Uuid()}, [(each,) for each in ids])
        statement = select_seen().where(table.c.execution_id.in_(select(given.c.execution_id)))
        return await self._read_seen(statement.order_by(table.c.execution_id), now)

    async def streaks(self, schedule_ids: Collection[UUID], *, most: int) -> dict[UUID, int]:
        """How many of the latest runs of each have failed one after the other; counted up to `most`."""
        if not schedule_ids:
            return {}
        ended = [Status.SUCCESS.value, *(each.value for each in FAILING)]
        wanted = wanted_schedules(self._dialect, schedule_ids)
        found: dict[UUID, list[tuple[datetime, str]]] = {}
        async with self._database.read(Pool.FIRING) as connection:
            for kind in (_BY_SCHEDULE, IS_BY_HAND):
                first = _latest(wanted, kind, most).where(execution_t.c.status.in_(ended))
                statement = self._dialect.of_each(wanted, first, execution_t.c.execution_id)
                for row in await connection.execute(statement):
                    found.setdefault(row.schedule_id, []).append((row.fire_ts, row.status))
        return {key: _streak(sorted(runs, reverse=True)[:most]) for key, runs in found.items()}

    # --- what did not happen ---------------------------------------------------------------------------

    async def standings(
        self,
        host_id: UUID,
        now: datetime,
        *,
        named: Collection[str] | None = None,
        after_name: str = "",
        limit: int,
    ) -> list[Standing]:
        """Schedules of a host in order of name: all, or those with these names or ids."""
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
        async with self._database.read(Pool.FIRING) as connection:
            rows = (await connection.execute(statement)).all()
        return [
            Standing(
                _subject_of(row, now),
                None if row.execution_id is None else _run_of(row),
                row.next_fire_ts,
                row.made_ts,
                row.paused_until_ts,
            )
            for row in rows
        ]

    async def resumed(self, schedule_ids: Collection[UUID]) -> dict[UUID, datetime]:
        """When each was last resumed, of those that ever were."""
        table, wanted = schedule_version_t, wanted_schedules(self._dialect, schedule_ids)
        statement = (
            select(table.c.schedule_id, func.max(table.c.created_ts).label("resumed_ts"))
            .where(
                table.c.schedule_id.in_(select(wanted.c.schedule_id)),
                table.c.change == ChangeKind.RESUMED.value,
            )
            .group_by(table.c.schedule_id)
        )
        async with self._database.read(Pool.FIRING) as connection:
            return {row.schedule_id: row.resumed_ts for row in await connection.execute(statement)}

    async def successes(self, since: Mapping[UUID, datetime]) -> dict[UUID, datetime]:
        """When each of these last ended well, of those that did since then."""
        table = execution_t
        wanted = self._dialect.rows(
            "wanted",
            {"schedule_id": Uuid(), "from_ts": Instant()},
            [(key, each - LONGEST_RUN) for key, each in since.items()],
        )
        found: dict[UUID, datetime] = {}
        async with self._database.read(Pool.FIRING) as connection:
            for kind in (_BY_SCHEDULE, IS_BY_HAND, f"triggered_by = '{TriggeredBy.BACKFILL.value}'"):
                first = _latest(wanted, kind, 1).where(
                    table.c.fire_ts >= wanted.c.from_ts, table.c.status == Status.SUCCESS.value
                )
                statement = self._dialect.of_each(wanted, first, table.c.execution_id)
                for row in await connection.execute(statement):
                    if row.ended_ts is not None and row.ended_ts >= since[row.schedule_id]:
                        known = found.get(row.schedule_id, row.ended_ts)
                        found[row.schedule_id] = max(known, row.ended_ts)
        return found

    async def latest_due(self, schedule_ids: Collection[UUID], until: datetime) -> dict[UUID, datetime]:
        """The latest time of each, up to then, that was to run; unless that very run has ended well."""
        wanted, table = wanted_schedules(self._dialect, schedule_ids), execution_t
        was_due = or_(table.c.reason.is_(None), table.c.reason.not_in(_NOT_DUE))
        first = _latest(wanted, _BY_SCHEDULE, 1).where(table.c.fire_ts <= until, was_due)
        statement = self._dialect.of_each(wanted, first, table.c.execution_id)
        async with self._database.read(Pool.FIRING) as connection:
            rows = (await connection.execute(statement)).all()
        return {row.schedule_id: row.fire_ts for row in rows if row.status != Status.SUCCESS.value}

    # --- pieces ----------------------------------------------------------------------------------------

    async def _read_seen(self, statement: Select[Any], now: datetime) -> list[Seen]:
        async with self._database.read(Pool.FIRING) as connection:
            return [seen_of(row, now) for row in await connection.execute(statement)]

    def _hosts(self, hosts: Collection[UUID]) -> FromClause:
        return self._dialect.rows("hosts", {"host_id": Uuid()}, [(each,) for each in hosts])

    def _of(self, hosts: Collection[UUID]) -> Any:
        # Only checked: what is looked for is found by its time.
        return self._dialect.guard(execution_t.c.host_id).in_(select(self._hosts(hosts).c.host_id))


def select_seen(*more: Any) -> Select[Any]:
    statement = select(
        *(schedule_t.c[name] for name in _SUBJECT), *(execution_t.c[name] for name in _RUN), *more
    )
    if more:
        return statement
    return statement.select_from(
        execution_t.join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
    )


def _latest(wanted: FromClause, kind: str, most: int) -> Select[Any]:
    """The latest runs of one of the wanted schedules."""
    table = execution_t
    return (
        select(table.c.execution_id, table.c.schedule_id, table.c.fire_ts, table.c.status, table.c.ended_ts)
        .where(table.c.schedule_id == wanted.c.schedule_id, text(kind))
        .order_by(table.c.fire_ts.desc())
        .limit(most)
        .correlate(wanted)
    )


def _streak(runs: Sequence[tuple[datetime, str]]) -> int:
    for count, (_, status) in enumerate(runs):
        if status == Status.SUCCESS.value:
            return count
    return len(runs)


def _id_of(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def seen_of(row: Any, now: datetime) -> Seen:
    return Seen(_subject_of(row, now), _run_of(row))


def _subject_of(row: Any, now: datetime) -> Subject:
    # A pause that has an end is over then, whatever the row still says.
    is_paused = row.paused and (row.paused_until_ts is None or row.paused_until_ts > now)
    return Subject(
        row.schedule_id,
        row.host_id,
        row.schedule_name,
        row.labels,
        is_paused,
        row.deleted_ts is not None,
        row.active,
        row.state == ScheduleState.COMPLETED.value,
    )


def _run_of(row: Any) -> Run:
    return Run(
        row.execution_id,
        Status(row.status),
        row.attempt,
        TriggeredBy(row.triggered_by),
        row.fire_ts,
        row.started_ts,
        row.ended_ts,
        row.due_by_ts,
        row.error,
    )


def wanted_schedules(dialect: Dialect, schedule_ids: Collection[UUID]) -> FromClause:
    return dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
