"""Queries of the notifier on schedules and executions: reads only, each bounded and by an index.

Firing, claiming and settling write nothing extra for it. Failures are found by an index that contains only
failures. The state of a schedule is its row in `schedule_status_t`.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Uuid, and_, or_, select, text

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.executions import IS_BY_HAND, IS_FAILED, execution_t
from foliot.model.execution import Status
from foliot.model.incident import FAILING
from foliot.notifications.lateness_sql import Lateness
from foliot.notifications.missed_runs_sql import IS_BY_SCHEDULE, MissedRunQueries
from foliot.notifications.observed_rows import ObservedExecution, seen_of, select_seen, wanted_schedules


class NotificationQueries:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        self.lateness = Lateness(database)
        self.silence = MissedRunQueries(database)

    async def failures(
        self,
        hosts: Collection[UUID],
        now: datetime,
        *,
        since: datetime,
        after: UUID | None = None,
        limit: int,
    ) -> list[ObservedExecution]:
        """Return executions that failed in [since, now], in order of their end.

        `after`: of those that ended exactly at `since`, return only ids behind this one.
        """
        table = execution_t
        is_behind = table.c.ended_ts >= since
        if after is not None:
            is_behind = or_(
                table.c.ended_ts > since, and_(table.c.ended_ts == since, table.c.execution_id > after)
            )
        given = self._dialect.rows("hosts", {"host_id": Uuid()}, [(each,) for each in hosts])
        statement: Select[Any] = (
            select_seen()
            .where(
                text(f"execution_t.{IS_FAILED}"),
                table.c.ended_ts >= since,
                table.c.ended_ts <= now,
                is_behind,
                # The guard keeps the planner from looking rows up by host: the time finds them.
                self._dialect.guard(table.c.host_id).in_(select(given.c.host_id)),
            )
            .order_by(table.c.ended_ts, table.c.execution_id)
            .limit(limit)
        )
        return [seen_of(row, now) for row in await self._database.fetch(Pool.FIRING, statement)]

    async def streaks(self, schedule_ids: Collection[UUID], *, limit: int) -> dict[UUID, int]:
        """Count the consecutive failures of each schedule's latest runs, up to `limit`."""
        if not schedule_ids:
            return {}
        ended = [Status.SUCCESS.value, *(each.value for each in FAILING)]
        wanted = wanted_schedules(self._dialect, schedule_ids)
        table = execution_t
        found: dict[UUID, list[tuple[datetime, str]]] = {}
        async with self._database.read(Pool.FIRING) as connection:
            for kind in (IS_BY_SCHEDULE, IS_BY_HAND):
                first = (
                    select(table.c.execution_id, table.c.schedule_id, table.c.fire_ts, table.c.status)
                    .where(table.c.schedule_id == wanted.c.schedule_id, text(kind), table.c.status.in_(ended))
                    .order_by(table.c.fire_ts.desc())
                    .limit(limit)
                    .correlate(wanted)
                )
                statement = self._dialect.of_each(wanted, first, table.c.execution_id)
                for row in await connection.execute(statement):
                    found.setdefault(row.schedule_id, []).append((row.fire_ts, row.status))
        return {key: _streak(sorted(runs, reverse=True)[:limit]) for key, runs in found.items()}


def _streak(runs: Sequence[tuple[datetime, str]]) -> int:
    for count, (_, status) in enumerate(runs):
        if status == Status.SUCCESS.value:
            return count
    return len(runs)
