"""Stopping what is open: pending ones end at once, running ones are told when their worker next renews."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Uuid, case, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.execution import CLAIMABLE, Status
from foliot.store.dialect import Dialect
from foliot.store.schema import IS_OPEN, execution_t


async def request_cancel(
    connection: AsyncConnection,
    dialect: Dialect,
    schedule_ids: Sequence[UUID],
    *,
    reason: str,
    keep: Sequence[UUID] = (),
    with_running: bool = True,
) -> None:
    """Cancel the open executions of these schedules, but not those to keep."""
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    kept = dialect.rows("kept", {"execution_id": Uuid()}, [(each,) for each in keep])
    is_waiting = execution_t.c.status.in_([each.value for each in CLAIMABLE])
    statement = (
        update(execution_t)
        .where(
            execution_t.c.schedule_id.in_(select(wanted.c.schedule_id)),
            text(IS_OPEN),
            execution_t.c.execution_id.not_in(select(kept.c.execution_id)),
        )
        .values(
            cancel_requested=True,
            status=case((is_waiting, Status.CANCELLED.value), else_=execution_t.c.status),
            reason=case((is_waiting, reason), else_=execution_t.c.reason),
            ended_ts=case((is_waiting, dialect.now()), else_=execution_t.c.ended_ts),
        )
    )
    if not with_running:
        statement = statement.where(is_waiting)
    await connection.execute(statement)
