"""What everyone does who adds work to a single schedule: lock its row, then see what overlap allows."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import NotFoundError, QueueFullError
from foliot.model.event import CancelledExecution
from foliot.model.schedule import Schedule
from foliot.planning.overlap import OpenCounts, OverlapDecision, admit_execution
from foliot.store.cancelling import request_cancel
from foliot.store.dialect import Dialect
from foliot.store.ledger import count_open_now
from foliot.store.schedule_rows import schedule_of
from foliot.store.schema import queue_t, schedule_t
from foliot.store.together import Write, row_of_values


async def lock_schedule(
    connection: AsyncConnection, schedule_id: UUID, *, host_id: UUID | None = None, to_change: bool = False
) -> Schedule:
    """Raises NotFoundError, also for a deleted schedule and one of another host; UnreadableError.

    What is to be changed must be understood to its last field: it is written back as a whole.
    """
    statement = (
        select(schedule_t)
        .where(schedule_t.c.schedule_id == schedule_id, schedule_t.c.deleted_ts.is_(None))
        .with_for_update()
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None or (host_id is not None and row.host_id != host_id):
        raise NotFoundError("schedule", schedule_id)
    return schedule_of(row, to_change=to_change)


class Room(NamedTuple):
    is_free: bool
    """Whether one more execution may run now; it is held otherwise, never skipped."""
    now: datetime
    """By the store's clock."""
    replaced: Sequence[CancelledExecution] = ()
    """Those that ended for it at once."""


async def make_room(connection: AsyncConnection, dialect: Dialect, schedule: Schedule) -> Room:
    """See what overlap allows. The schedule's row must be locked. Raises QueueFullError.

    Under `cancel_running` what is open is asked to stop.
    """
    counted = await connection.execute(count_open_now(dialect), {"wanted_id": schedule.schedule_id})
    open_count, held_count, now = counted.one()
    overlap = schedule.spec.overlap
    admission = admit_execution(overlap, OpenCounts(open_count, held_count), is_skippable=False)
    if admission is OverlapDecision.WAIT:
        raise QueueFullError(schedule.schedule_id, overlap.max_queued)
    replaced: Sequence[CancelledExecution] = ()
    if admission is OverlapDecision.REPLACE:
        replaced = await request_cancel(connection, dialect, [schedule.schedule_id], reason="replaced")
    return Room(admission is OverlapDecision.RUN, now, replaced)


async def know_queue(connection: AsyncConnection, dialect: Dialect, host_id: UUID, queue: str) -> None:
    """Workers look for work in the queues of `queue_t` only."""
    await connection.execute(
        dialect.insert(queue_t).values(host_id=host_id, queue=queue).on_conflict_do_nothing()
    )


def queue_write(dialect: Dialect, host_id: UUID, queue: str) -> Write:
    """A row of `queue_t`, to be written together with other rows."""
    return row_of_values(
        dialect, queue_t, {"host_id": host_id, "queue": queue, "paused": False}, may_exist=True
    )
