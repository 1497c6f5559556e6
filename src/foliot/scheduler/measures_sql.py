"""Cluster-wide figures for metrics. Each query reads a bounded number of rows.

A count above a cap is reported as the cap. Nothing is locked: firing, claiming and settling neither wait for
these queries nor do any work for them.

Measured on 2 cores: 100,000 waiting executions take 110 ms on PostgreSQL and 500 ms on SQLite; counting
100,000 schedules takes 35 ms and 70 ms.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, literal, select, text, union_all

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import OFFSETS
from foliot.db.tables.events import log_counter, relay_t
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.policy import Priority, priority_from
from foliot.model.schedule import ScheduleState

MAX_OF_QUEUE = 10_000
MAX_WAITING = 100_000
"""Cap for all queues together."""
MAX_QUEUES = 1_000
MAX_SCHEDULES = 1_000_000
LONGEST_SLA_S = max(priority.sla_s for priority in Priority)

Depths = Mapping[str, Mapping[Priority, int]]


class Measures:
    def __init__(self, database: Database, *, max_of_queue: int = MAX_OF_QUEUE) -> None:
        self._database = database
        self._dialect = database.dialect
        self._max_of_queue = max_of_queue

    async def queue_depths(self) -> Depths:
        """Count ready executions that wait for a worker, by queue and priority, over all hosts.

        The count of a host's queue is capped. An empty queue is included with zeros.
        """
        table = execution_t
        first = (
            select(table.c.execution_id, table.c.queue, table.c.priority)
            .where(
                table.c.host_id == queue_t.c.host_id,
                table.c.queue == queue_t.c.queue,
                text(IS_CLAIMABLE),
                # A ready execution is due within its SLA, so retries in the far future are not read.
                table.c.due_by_ts <= self._dialect.plus(self._dialect.now(), LONGEST_SLA_S),
                table.c.ready_ts <= self._dialect.now(),
            )
            .limit(self._max_of_queue)
            .correlate(queue_t)
        )
        waiting = (
            self._dialect.of_each(queue_t, first, table.c.execution_id).limit(MAX_WAITING).subquery("waiting")
        )
        counted = select(waiting.c.queue, waiting.c.priority, func.count().label("depth")).group_by(
            waiting.c.queue, waiting.c.priority
        )
        known = select(queue_t.c.queue).distinct().order_by(queue_t.c.queue).limit(MAX_QUEUES)
        async with self._database.read(Pool.LEASE) as connection:
            depths = {row.queue: dict.fromkeys(Priority, 0) for row in await connection.execute(known)}
            for row in await connection.execute(counted):
                of_queue = depths.setdefault(row.queue, dict.fromkeys(Priority, 0))
                of_queue[priority_from(row.priority)] += row.depth
        return depths

    async def active_schedules(self) -> int:
        """Count schedules that will become due: with a next time, or waiting for the end of a run."""
        is_active = text(f"state = '{ScheduleState.ACTIVE.value}'")
        timed = self._some(schedule_t.c.active, schedule_t.c.next_run_ts.is_not(None), is_active)
        # Exactly the condition of idx_schedule_waiting: SQLite uses the index for no other text.
        waiting = self._some(is_active, text("next_run_ts IS NULL AND deleted_ts IS NULL"))
        statement = select(func.count()).select_from(union_all(timed, waiting).subquery())
        count: int = (await self._database.fetch(Pool.LEASE, statement)).scalar_one()
        return count

    async def outbox_lag(self) -> int | None:
        """Return the number of messages that no relay has sent. None: there was never a relay."""
        statement = select(log_counter.c.next_offset - relay_t.c.next_offset).join_from(
            relay_t, log_counter, log_counter.c.id == OFFSETS
        )
        lags = (await self._database.fetch(Pool.LEASE, statement)).scalars().all()
        return max(0, *lags) if lags else None

    def _some(self, *conditions: Any) -> Any:
        some = select(literal(1).label("one")).select_from(schedule_t).where(*conditions)
        return select(some.limit(MAX_SCHEDULES).subquery())
