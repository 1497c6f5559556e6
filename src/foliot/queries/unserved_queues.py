"""Queues with waiting executions that no live worker serves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.tables.cluster import instance_t
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.model.broker import BrokerKind
from foliot.model.policy import Priority
from foliot.queries.registry_list import LIVE_S

MAX_SHOWN = 20
MAX_QUEUES = 1_000
"""Max queues to check, the first in order of name."""
MAX_COUNTED = 1_000
"""Max executions to count per host and queue."""
MAX_READ = 20_000
"""Max executions to count in total."""
LONGEST_SLA = timedelta(seconds=max(priority.sla_s for priority in Priority))


@dataclass(frozen=True, slots=True)
class UnservedQueue:
    """A queue with executions that nobody will claim."""

    queue: str
    waiting: int
    """Number of ready executions, up to MAX_COUNTED per host."""
    oldest_ready_ts: datetime
    """When the longest-waiting one became ready."""


async def unserved_queues(
    connection: AsyncConnection, dialect: Dialect, now: datetime, host_id: UUID | None = None
) -> Sequence[UnservedQueue]:
    """Return up to MAX_SHOWN queues in order of name. `host_id` None: of all hosts.

    Reads the registry, one row of each of up to MAX_QUEUES queues, and up to MAX_READ rows of those found.
    """
    served, priorities = await _served(connection, dialect)
    if served is None or not priorities:
        return []
    of_host = () if host_id is None else (queue_t.c.host_id == host_id,)
    unserved = _places(*of_host, queue_t.c.queue.not_in(served))
    rows = await connection.execute(_waiting(dialect, unserved, now, priorities, limit=1))
    names = sorted({row.queue for row in rows})[:MAX_SHOWN]
    if not names:
        return []
    shown = _places(*of_host, queue_t.c.queue.in_(names))
    some = _waiting(dialect, shown, now, priorities, limit=MAX_COUNTED).limit(MAX_READ).subquery()
    totals = (
        select(
            some.c.queue, func.count().label("waiting"), func.min(some.c.ready_ts).label("oldest_ready_ts")
        )
        .group_by(some.c.queue)
        .order_by(some.c.queue)
    )
    return [UnservedQueue(*row) for row in await connection.execute(totals)]


async def _served(
    connection: AsyncConnection, dialect: Dialect
) -> tuple[list[str] | None, Sequence[Priority]]:
    """Return the queues of live workers that accept work (None: every queue), and the priorities to check.

    Priorities carried by Celery are left out: Celery's workers take them, and these are not registered as
    instances before their first execution.
    """
    statement = select(
        instance_t.c.known_tasks, instance_t.c.queues, instance_t.c.transports, instance_t.c.draining
    ).where(instance_t.c.last_heartbeat >= dialect.plus(dialect.now(), -LIVE_S))
    instances: Sequence[Any] = (await connection.execute(statement)).all()
    ways = [each.transports for each in instances if each.transports]
    of_celery = {priority for priority in Priority if any(_is_celery(way, priority) for way in ways)}
    priorities = [priority for priority in Priority if priority not in of_celery]
    workers = [each for each in instances if each.known_tasks is not None and not each.draining]
    if any(worker.queues is None for worker in workers):
        return None, priorities
    return sorted({name for worker in workers for name in worker.queues}), priorities


def _is_celery(way: Any, priority: Priority) -> bool:
    return bool(way.get(priority, {}).get("kind") == BrokerKind.CELERY)


def _places(*conditions: ColumnElement[bool]) -> FromClause:
    statement = select(queue_t.c.host_id, queue_t.c.queue).where(*conditions)
    return statement.order_by(queue_t.c.queue, queue_t.c.host_id).limit(MAX_QUEUES).subquery("places")


def _waiting(
    dialect: Dialect, places: FromClause, now: datetime, priorities: Sequence[Priority], *, limit: int
) -> Select[Any]:
    """Select up to `limit` ready executions of each queue, by idx_execution_claimable."""
    table = execution_t
    some: tuple[ColumnElement[bool], ...] = ()
    if len(priorities) < len(Priority):
        some = (table.c.priority.in_([str(each) for each in priorities]),)
    first = (
        select(table.c.execution_id, table.c.queue, table.c.ready_ts)
        .where(
            table.c.host_id == places.c.host_id,
            table.c.queue == places.c.queue,
            text(IS_CLAIMABLE),
            # A ready execution is due within its SLA, so retries in the far future are not read.
            table.c.due_by_ts <= now + LONGEST_SLA,
            table.c.ready_ts <= now,
            *some,
        )
        .order_by(table.c.due_by_ts)
        .limit(limit)
        .correlate(places)
    )
    return dialect.of_each(places, first, table.c.execution_id)
