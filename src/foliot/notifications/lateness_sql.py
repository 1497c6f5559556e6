"""Queries for the notifier: executions that wait too long, or were started too late.

Each queue is read separately, with its own cursor. So a queue with a large backlog hides no other.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import String, Uuid, and_, or_, select, text

from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.db.types import Instant
from foliot.notifications.observed_rows import ObservedExecution, seen_of, wanted_executions

Queue = tuple[UUID, str]
"""(host_id, name)."""
NONE_BEFORE = UUID(int=0)


class Behind(NamedTuple):
    """Cursor within a queue, in the order of `due_by_ts`: read on behind this execution."""

    due_by_ts: datetime
    execution_id: UUID = NONE_BEFORE


class LateQueue(NamedTuple):
    """Late executions of a queue."""

    seen: list[ObservedExecution]
    """Most overdue first."""
    behind: Behind | None
    """Cursor to continue at. None: there are no more."""


class Lateness(Statements):
    async def queues(self, hosts: Collection[UUID], now: datetime, *, since: datetime) -> list[Queue]:
        """Return the queues with executions that should have started in [since, now) and still wait.

        Executions in a paused queue are not late.
        """
        table = execution_t
        first = (
            select(table.c.execution_id, table.c.host_id, table.c.queue)
            .where(
                table.c.host_id == queue_t.c.host_id,
                table.c.queue == queue_t.c.queue,
                text(IS_CLAIMABLE),
                table.c.due_by_ts >= since,
                table.c.due_by_ts < now,
            )
            .order_by(table.c.due_by_ts)
            .limit(1)
            .correlate(queue_t)
        )
        given = self._dialect.rows("hosts", {"host_id": Uuid()}, [(each,) for each in hosts])
        places = queue_t.join(given, and_(given.c.host_id == queue_t.c.host_id, ~queue_t.c.paused))
        statement = self._dialect.of_each(places, first, table.c.execution_id)
        return [(row.host_id, row.queue) for row in await self._database.fetch(Pool.FIRING, statement)]

    async def waiting(
        self, places: Mapping[Queue, Behind], now: datetime, *, share: int
    ) -> dict[Queue, LateQueue]:
        """Return up to `share` late executions of each of these queues, except paused ones."""
        table = execution_t
        wanted = self._dialect.rows(
            "wanted",
            {"host_id": Uuid(), "queue": String(), "since_ts": Instant(), "after_id": Uuid()},
            [(*queue, *behind) for queue, behind in places.items()],
        )
        first = (
            select(table.c.execution_id, table.c.host_id, table.c.queue, table.c.due_by_ts)
            .where(
                table.c.host_id == wanted.c.host_id,
                table.c.queue == wanted.c.queue,
                text(IS_CLAIMABLE),
                table.c.due_by_ts >= wanted.c.since_ts,
                table.c.due_by_ts < now,
                or_(
                    table.c.due_by_ts > wanted.c.since_ts,
                    table.c.execution_id > wanted.c.after_id,
                ),
            )
            .order_by(table.c.due_by_ts, table.c.execution_id)
            .limit(share)
            .correlate(wanted)
        )
        open_queues = wanted.join(
            queue_t,
            and_(queue_t.c.host_id == wanted.c.host_id, queue_t.c.queue == wanted.c.queue, ~queue_t.c.paused),
        )
        statement = self._dialect.of_each(open_queues, first, table.c.execution_id)
        rows = (await self._database.fetch(Pool.FIRING, statement)).all()
        of_queue: dict[Queue, list[Behind]] = {queue: [] for queue in places}
        for row in rows:
            of_queue[row.host_id, row.queue].append(Behind(row.due_by_ts, row.execution_id))
        seen = await self._seen([row.execution_id for row in rows], now)
        found = {}
        for queue, some in of_queue.items():
            some.sort()
            known = [seen[each.execution_id] for each in some if each.execution_id in seen]
            found[queue] = LateQueue(known, some[-1] if len(some) == share else None)
        return found

    async def running(
        self,
        hosts: Collection[UUID],
        now: datetime,
        *,
        since: datetime,
        after: UUID = NONE_BEFORE,
        limit: int,
    ) -> list[ObservedExecution]:
        """Return running executions that started too late since `since`, in order of id, behind `after`."""
        table = execution_t
        given = self._dialect.rows("hosts", {"host_id": Uuid()}, [(each,) for each in hosts])
        late = (
            select(table.c.execution_id)
            .where(
                table.c.status == text("'running'"),
                table.c.started_ts > table.c.due_by_ts,
                table.c.started_ts >= since,
                # For the index: an execution that is not lost has a lease that has not expired.
                table.c.lease_until >= since,
                self._dialect.guard(table.c.host_id).in_(select(given.c.host_id)),
            )
            .cte("late")
            # If inlined, the ORDER BY would make the planner read all executions by primary key.
            .prefix_with("MATERIALIZED")
        )
        statement = (
            select(late.c.execution_id)
            .where(late.c.execution_id > after)
            .order_by(late.c.execution_id)
            .limit(limit)
        )
        ids = list((await self._database.fetch(Pool.FIRING, statement)).scalars())
        seen = await self._seen(ids, now)
        return [seen[each] for each in ids if each in seen]

    async def _seen(self, execution_ids: Sequence[UUID], now: datetime) -> dict[UUID, ObservedExecution]:
        if not execution_ids:
            return {}
        statement = wanted_executions(self._dialect, execution_ids)
        rows = (await self._database.fetch(Pool.FIRING, statement)).all()
        return {row.execution_id: seen_of(row, now) for row in rows}
