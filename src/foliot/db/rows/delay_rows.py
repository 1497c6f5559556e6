"""Set the next time of `delay` triggers when a run ends, under the schedule's lock.

A schedule that waits for its run to end is active and has no next time. Nothing else is in that state, so the
janitor can find and restart a schedule whose run ended without a settle (its worker vanished, or the run was
cancelled or pruned).
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, exists, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.schedule_rows import schedule_of
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import InvalidError, UnreadableError
from foliot.model.schedule import ScheduleState
from foliot.planning.definition import compile_spec
from foliot.planning.fire import next_after_end


def is_waiting_for_end() -> tuple[Any, ...]:
    """Conditions on `schedule_t`: active, not paused, no next time, and no scheduled execution is open."""
    return (
        schedule_t.c.state == text("'active'"),
        schedule_t.c.next_run_ts.is_(None),
        schedule_t.c.deleted_ts.is_(None),
        ~schedule_t.c.paused,
        ~exists().where(
            execution_t.c.schedule_id == schedule_t.c.schedule_id,
            execution_t.c.triggered_by == "scheduler",
            text(IS_OPEN),
        ),
    )


async def set_next_after_end(
    connection: AsyncConnection, dialect: Dialect, schedule_ids: Sequence[UUID]
) -> list[UUID]:
    """Start the delay now for those of the schedules that wait for a run's end; return their ids.

    Skips schedules that this version can't read, which other versions handle, and locked rows, which the next
    scan handles.
    """
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    rows = (
        await connection.execute(
            select(schedule_t, dialect.now().label("store_now"))
            .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)), *is_waiting_for_end())
            .order_by(schedule_t.c.schedule_id)
            .with_for_update(skip_locked=True)
        )
    ).all()
    restarted = []
    for row in rows:
        try:
            schedule = schedule_of(row)
            cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
        except (UnreadableError, InvalidError):
            continue
        if cadence.delay_s is None:
            continue
        has_run_enough = cadence.max_runs is not None and schedule.run_count >= cadence.max_runs
        upcoming = None if has_run_enough else next_after_end(cadence, row.store_now)
        await connection.execute(
            update(schedule_t)
            .where(schedule_t.c.schedule_id == schedule.schedule_id)
            .values(
                next_fire_ts=upcoming and upcoming.fire_ts,
                next_run_ts=upcoming and upcoming.run_ts,
                state=(ScheduleState.ACTIVE if upcoming else ScheduleState.COMPLETED).value,
            )
        )
        restarted.append(schedule.schedule_id)
    return restarted
