"""The order in which transactions lock rows, so that none ever wait for each other in a circle:

    the shard's row, then schedules, then executions, then `schedule_status_t`; each by id.

Whoever needs several rows of a table locks them here first and writes then: an UPDATE takes its rows in any
order. Those that pass over locked rows (claim, rescue) can be part of no circle. Renewing, settling and the
journal of one worker, which write the same executions again and again, take turns inside its process instead
(`Journal.rows`): a lock of theirs would cost every execution a statement.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Label, Uuid, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.store.dialect import Dialect
from foliot.store.schema import execution_t, schedule_t


async def lock_schedules(connection: AsyncConnection, dialect: Dialect, schedule_ids: Sequence[UUID]) -> None:
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    await connection.execute(
        select(schedule_t.c.schedule_id)
        .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
        .order_by(schedule_t.c.schedule_id)
        .with_for_update()
    )


def schedule_name() -> Label[str]:
    """Of the schedule of an execution, for those who tell of it."""
    named = select(schedule_t.c.schedule_name).where(schedule_t.c.schedule_id == execution_t.c.schedule_id)
    return named.correlate(execution_t).scalar_subquery().label("schedule_name")


async def lock_executions(connection: AsyncConnection, dialect: Dialect, *conditions: Any) -> Sequence[Any]:
    """The executions of which the conditions hold, as they are once they are locked; with `schedule_name` and
    `store_now`."""
    statement = (
        select(execution_t, schedule_name(), dialect.now().label("store_now"))
        .where(*conditions)
        .order_by(execution_t.c.execution_id)
        .with_for_update()
    )
    return (await connection.execute(statement)).all()
