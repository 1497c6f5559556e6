"""Fire schedules whose target is an event: write executions and events in one transaction.

This works like `firing_sql.py`, with two differences. The execution of an event ends in the transaction that
fires it, so it is never open and the overlap policy does not apply. And the events are written last, since
this waits for other transactions that write events (`db/rows/event_rows.py`). The content of an event is read
from the schedule's row, which the guarded update has just locked.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Text, cast
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.event_rows import write_events
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.db.rows.ledger import NewExecution, insert_event_executions
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import Status
from foliot.model.ids import ids_at
from foliot.model.lease import Lease
from foliot.planning.events import NewEvent, UnreadableTargetError, plan_event
from foliot.planning.fire import Firing
from foliot.planning.overlap import OverlapDecision
from foliot.scheduler.advancing_sql import advance_planned, arguments_of, lay_out_planned


class _Advanced(NamedTuple):
    event_seq: int
    """The number of the schedule's latest event, including those that fire now."""
    target: str
    schedule_name: str


async def fire_events(
    connection: AsyncConnection, dialect: Dialect, lease: Lease, firings: Sequence[Firing], now: datetime
) -> tuple[list[NewExecution], dict[UUID, str]]:
    """Advance schedules that are still as planned, and write their executions and events.

    Returns the executions, and the names of the advanced schedules by id.
    """
    if not firings:
        return [], {}
    advanced = await _advance(connection, dialect, lease, firings, now)
    rows = _rows_of([firing for firing in firings if firing.due.schedule_id in advanced], now)
    written = await insert_event_executions(connection, dialect, rows, lease.instance_id)
    rows = [row for row in rows if row.execution_id in written]
    fired = [row for row in rows if row.reason is None]
    await record_status(
        connection,
        dialect,
        [LastRun(row.due.schedule_id, now, Status.SUCCESS, row.execution_id) for row in fired],
    )
    await write_events(connection, dialect, _events_of(fired, advanced))
    return rows, {schedule_id: each.schedule_name for schedule_id, each in advanced.items()}


async def _advance(
    connection: AsyncConnection, dialect: Dialect, lease: Lease, firings: Sequence[Firing], now: datetime
) -> dict[UUID, _Advanced]:
    batch = lay_out_planned(dialect, firings)
    statement = advance_planned(dialect, lease.shard, batch.shape, counts_events=True).returning(
        schedule_t.c.schedule_id,
        schedule_t.c.event_seq,
        cast(schedule_t.c.target, Text),
        schedule_t.c.schedule_name,
    )
    result = await connection.execute(statement, arguments_of(batch, now))
    return {row[0]: _Advanced(*row[1:]) for row in result}


def _rows_of(firings: Sequence[Firing], now: datetime) -> list[NewExecution]:
    next_id = ids_at(now)
    return [
        NewExecution(next_id(), firing.due, decision, OverlapDecision.RUN, decision.reason)
        for firing in firings
        for decision in firing.decisions
    ]


def _events_of(fired: Sequence[NewExecution], advanced: Mapping[UUID, _Advanced]) -> list[NewEvent]:
    """Build the events of these executions.

    Raises one UnreadableTargetError for all schedules with unreadable targets, to park all of them at once.
    """
    ahead: dict[UUID, int] = {}
    for row in fired:
        ahead[row.due.schedule_id] = ahead.get(row.due.schedule_id, 0) + 1
    events = []
    unreadable: dict[UUID, str] = {}
    for row in fired:
        schedule_id = row.due.schedule_id
        ahead[schedule_id] -= 1
        latest, target, _name = advanced[schedule_id]
        try:
            event = plan_event(
                target,
                execution_id=row.execution_id,
                schedule_id=schedule_id,
                host_id=row.due.host_id,
                event_seq=latest - ahead[schedule_id],
                fire_ts=row.decision.fire_ts,
            )
        except UnreadableTargetError as error:
            unreadable.update(error.reasons)
        else:
            events.append(event)
    if unreadable:
        raise UnreadableTargetError(unreadable)
    return events
