"""Schedules whose task function no live worker knows: nobody would run them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.tables.cluster import instance_t
from foliot.db.tables.schedules import schedule_t
from foliot.queries.registry_list import LIVE_S

MAX_EXAMINED = 100_000
SHOWN = 20


@dataclass(frozen=True, slots=True)
class UnknownTask:
    """A task function that schedules use, but no live worker knows."""

    task: str
    schedule_count: int
    schedule_name: str
    """Name of one of these schedules."""


async def unknown_tasks(
    connection: AsyncConnection, dialect: Dialect, host_id: UUID | None = None
) -> Sequence[UnknownTask]:
    """Return up to SHOWN tasks in order of name. `host_id` None: all hosts. Reads up to 100,000 schedules."""
    task = schedule_t.c.target["name"].as_string().label("task")
    some = (
        select(task, schedule_t.c.schedule_name)
        .where(
            *(() if host_id is None else (schedule_t.c.host_id == host_id,)),
            schedule_t.c.active,
            schedule_t.c.next_run_ts.is_not(None),
            schedule_t.c.target["kind"].as_string() == "function",
        )
        .limit(MAX_EXAMINED)
        .subquery()
    )
    statement = (
        select(some.c.task, func.count().label("schedules"), func.min(some.c.schedule_name).label("name"))
        .where(some.c.task.not_in(await _known(connection, dialect)))
        .group_by(some.c.task)
        .order_by(some.c.task)
        .limit(SHOWN)
    )
    return [UnknownTask(row.task, row.schedules, row.name) for row in await connection.execute(statement)]


async def _known(connection: AsyncConnection, dialect: Dialect) -> list[str]:
    """Return the tasks that live workers know. Draining workers do not count."""
    statement = select(instance_t.c.known_tasks).where(
        instance_t.c.known_tasks.is_not(None),
        instance_t.c.draining.is_(False),
        instance_t.c.last_heartbeat >= dialect.plus(dialect.now(), -LIVE_S),
    )
    known = (await connection.execute(statement)).scalars()
    return sorted({name for names in known for name in names})
