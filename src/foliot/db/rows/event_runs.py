"""Write events of a single schedule for a manual run or a backfill, not for scheduled firing."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.event_rows import next_event_seq, write_events
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.model.execution import Status
from foliot.model.schedule import Schedule
from foliot.planning.events import plan_event


async def say_events(
    connection: AsyncConnection,
    dialect: Dialect,
    schedule: Schedule,
    fire_times: Mapping[UUID, datetime],
    now: datetime,
    *,
    args: Mapping[str, Any] | None = None,
) -> None:
    """Write an event for each of these executions.

    The transaction must have locked the schedule's row, and do nothing after this.
    """
    target = schedule.spec.target.model_dump_json()
    first = await next_event_seq(connection, schedule.schedule_id, len(fire_times))
    events = [
        plan_event(
            target,
            execution_id=execution_id,
            schedule_id=schedule.schedule_id,
            host_id=schedule.host_id,
            event_seq=first + number,
            fire_ts=fire_ts,
            args=args,
        )
        for number, (execution_id, fire_ts) in enumerate(fire_times.items())
    ]
    latest = list(fire_times)[-1]
    await record_status(connection, dialect, [LastRun(schedule.schedule_id, now, Status.SUCCESS, latest)])
    await write_events(connection, dialect, events)
