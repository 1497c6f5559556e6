"""The queues of a host: how many executions wait in each, for how long, and how many run.

Counts use the index that workers claim from, and stop at `MAX_COUNTED`. So a backlog of millions takes no
longer to count than one of thousands.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, case, func, select, text, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.model.errors import NotFoundError
from foliot.model.policy import Priority, priority_from
from foliot.queries.execution_search import literally

MAX_COUNTED = 10_000
QUEUES_AT_ONCE = 50
LONGEST_SLA = timedelta(seconds=max(priority.sla_s for priority in Priority))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """Current state of a queue."""

    name: str
    is_paused: bool
    depth: Mapping[Priority, int]
    """Number of ready executions that wait for a worker."""
    is_capped: bool
    """Counting stopped at the cap: there may be more than `depth` shows."""
    oldest_ready_ts: datetime | None
    """When the longest-waiting execution became ready, of those counted."""
    sla_missed_count: int
    """How many of the counted executions should have started by now."""
    running_count: int
    is_running_capped: bool
    """Counting stopped at the cap: more may run in the cluster."""


class Queues:
    def __init__(self, database: Database, *, max_counted: int = MAX_COUNTED) -> None:
        self._database = database
        self._dialect = database.dialect
        self._max_counted = max_counted

    async def page(self, host_id: UUID, *, after: str = "", limit: int = 50) -> list[QueueRecord]:
        """Return a page in order of name, behind `after`."""
        return await self._read(host_id, limit, queue_t.c.queue > after)

    async def get(self, host_id: UUID, name: str) -> QueueRecord:
        """Return one queue. Raises NotFoundError."""
        found = await self._read(host_id, 1, queue_t.c.queue == name)
        if not found:
            raise NotFoundError("queue", name)
        return found[0]

    async def _read(self, host_id: UUID, limit: int, condition: ColumnElement[bool]) -> list[QueueRecord]:
        statement = (
            select(queue_t.c.queue, queue_t.c.paused, self._dialect.now().label("now"))
            .where(queue_t.c.host_id == host_id, condition)
            .order_by(queue_t.c.queue)
            .limit(limit)
        )
        async with self._database.read(Pool.API) as connection:
            queues = (await connection.execute(statement)).all()
            if not queues:
                return []
            waiting: list[Any] = []
            for begin in range(0, len(queues), QUEUES_AT_ONCE):
                names = [row.queue for row in queues[begin : begin + QUEUES_AT_ONCE]]
                waiting += await self._waiting(connection, host_id, names, queues[0].now)
            running, is_capped = await self._running(connection, host_id)
        return [
            self._record(
                row,
                [each for name, each in waiting if name == row.queue],
                running[row.queue],
                is_running_capped=is_capped,
            )
            for row in queues
        ]

    async def _waiting(
        self, connection: AsyncConnection, host_id: UUID, names: Sequence[str], now: datetime
    ) -> list[tuple[str, Any]]:
        """Count waiting executions by queue and priority."""
        counts = [self._count(number, host_id, name, now) for number, name in enumerate(names)]
        rows = await connection.execute(counts[0] if len(counts) == 1 else union_all(*counts))
        return [(names[row.number], row) for row in rows]

    def _count(self, number: int, host_id: UUID, name: str, now: datetime) -> Select[Any]:
        table = execution_t
        first = (
            select(table.c.priority, table.c.ready_ts, table.c.due_by_ts)
            .where(
                table.c.host_id == host_id,
                table.c.queue == name,
                text(IS_CLAIMABLE),
                # A ready execution is due within its SLA, so retries in the far future are not read.
                table.c.due_by_ts <= now + LONGEST_SLA,
                table.c.ready_ts <= now,
            )
            .order_by(table.c.due_by_ts)
            .limit(literally(self._max_counted))
            .subquery("first")
        )
        return select(
            literally(number).label("number"),
            first.c.priority,
            func.count().label("depth"),
            func.min(first.c.ready_ts).label("oldest_ready_ts"),
            func.sum(case((first.c.due_by_ts < now, 1), else_=0)).label("missed"),
        ).group_by(first.c.priority)

    async def _running(self, connection: AsyncConnection, host_id: UUID) -> tuple[Counter[str], bool]:
        """Count running executions by queue; also return whether the count stopped at the cap."""
        table = execution_t
        first = (
            select(table.c.host_id, table.c.queue)
            .where(text("status = 'running'"))
            .order_by(table.c.lease_until)
            .limit(literally(self._max_counted))
            .subquery("first")
        )
        statement = select(*first.c, func.count().label("running")).group_by(*first.c)
        rows = (await connection.execute(statement)).all()
        running = Counter({row.queue: row.running for row in rows if row.host_id == host_id})
        return running, sum(row.running for row in rows) >= self._max_counted

    def _record(
        self, queue: Any, waiting: Sequence[Any], running_count: int, *, is_running_capped: bool
    ) -> QueueRecord:
        depth = dict.fromkeys(Priority, 0)
        for row in waiting:
            depth[priority_from(row.priority)] += row.depth
        return QueueRecord(
            name=queue.queue,
            is_paused=queue.paused,
            depth=depth,
            is_capped=sum(depth.values()) >= self._max_counted,
            oldest_ready_ts=min((row.oldest_ready_ts for row in waiting), default=None),
            sla_missed_count=sum(row.missed for row in waiting),
            running_count=running_count,
            is_running_capped=is_running_capped,
        )
