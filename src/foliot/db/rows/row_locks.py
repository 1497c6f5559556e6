"""The order in which transactions lock rows, to prevent deadlocks:

    the shard's row, then schedules, then executions, then `schedule_status_t`; each by id.

A transaction that needs several rows of a table locks them here before it writes, because an UPDATE locks its
rows in any order. Statements that skip locked rows (claim, rescue) can't cause a deadlock. One worker's
renewals, settlements and journal write the same executions repeatedly. They are serialized inside its process
(`Journal.rows`) instead: locking here would cost one more statement per execution.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Label, Uuid, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t


async def lock_schedules(connection: AsyncConnection, dialect: Dialect, schedule_ids: Sequence[UUID]) -> None:
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    await connection.execute(
        select(schedule_t.c.schedule_id)
        .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
        .order_by(schedule_t.c.schedule_id)
        .with_for_update()
    )


def schedule_name() -> Label[str]:
    """Column: name of the execution's schedule, for events and logs."""
    named = select(schedule_t.c.schedule_name).where(schedule_t.c.schedule_id == execution_t.c.schedule_id)
    return named.correlate(execution_t).scalar_subquery().label("schedule_name")


async def lock_executions(connection: AsyncConnection, dialect: Dialect, *conditions: Any) -> Sequence[Any]:
    """Lock the executions that match the conditions. Return them as they are under the lock.

    Each row also has `schedule_name` and `store_now`.
    """
    statement = (
        select(execution_t, schedule_name(), dialect.now().label("store_now"))
        .where(*conditions)
        .order_by(execution_t.c.execution_id)
        .with_for_update()
    )
    return (await connection.execute(statement)).all()
