"""Steps to add an execution to a single schedule: lock the schedule's row, then check overlap."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.combined_inserts import Write, row_of_values
from foliot.db.dialect import Dialect
from foliot.db.rows.cancellation import request_cancel
from foliot.db.rows.ledger import count_open_now
from foliot.db.rows.schedule_rows import schedule_of
from foliot.db.tables.executions import queue_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import NotFoundError, QueueFullError
from foliot.model.event import CancelledExecution
from foliot.model.schedule import Schedule
from foliot.planning.overlap import OpenCounts, OverlapDecision, admit_execution


async def lock_schedule(
    connection: AsyncConnection, schedule_id: UUID, *, host_id: UUID | None = None, to_change: bool = False
) -> Schedule:
    """Lock a schedule's row and return the schedule. Raises NotFoundError, UnreadableError.

    Deleted schedules and those of other hosts are not found. With `to_change`, every field must be readable,
    because the schedule is written back as a whole.
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
    """Whether one more execution may run now. If not, it is held, never skipped."""
    now: datetime
    """Time of the store's clock."""
    replaced: Sequence[CancelledExecution] = ()
    """Executions that were replaced and ended at once."""


async def make_room(connection: AsyncConnection, dialect: Dialect, schedule: Schedule) -> Room:
    """Check what overlap allows. The schedule's row must be locked. Raises QueueFullError.

    Under `cancel_running`, open executions are asked to stop.
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
    """Add a row to `queue_t` if it is missing. Workers poll only the queues in that table."""
    await connection.execute(
        dialect.insert(queue_t).values(host_id=host_id, queue=queue).on_conflict_do_nothing()
    )


def queue_write(dialect: Dialect, host_id: UUID, queue: str) -> Write:
    """Build the write of a row in `queue_t`, to be combined with other writes."""
    return row_of_values(
        dialect, queue_t, {"host_id": host_id, "queue": queue, "paused": False}, may_exist=True
    )
