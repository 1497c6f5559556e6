"""Events that were triggered inside an application's transaction, on their way to the outbox.

Offsets are assigned under the lock of `log_counter`, which is held until COMMIT. An application may keep its
transaction open for any time. So it must hold neither that lock nor the schedule's row or status. It only
inserts an execution and a row of `pending_event_t`. After its commit, the leader of the schedule's shard
moves the row to the event store and the outbox, in a short transaction of its own:

    1. fence      the shard's row, as for firing: one leader at a time, so events keep their order
    2. lock       some schedules with pending events, in order of their ids, each step continuing behind the
                  last; schedules that are locked by others wait for a later step
    3. read       their oldest pending events
    4. write      number them by their schedule, record the status, delete the pending rows, write the outbox

A crash before COMMIT leaves the pending rows; after COMMIT there are none. So nothing is lost or doubled. If
the events of a schedule can't be written, for example after a change of version, they stay pending and delay
no other schedule.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.combined_inserts import Write, row_of_values
from foliot.db.dialect import Dialect, Pool
from foliot.db.rows.event_rows import next_event_seq, write_events
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.db.rows.schedule_rows import schedule_of
from foliot.db.rows.shard_rows import is_of
from foliot.db.statements import Statements
from foliot.db.tables.events import pending_event_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import NotFoundError
from foliot.model.execution import Status
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule
from foliot.planning.events import NewEvent, plan_event
from foliot.scheduler.leases.leases_sql import require_lease

MAX_SCHEDULES = 100
"""Max schedules per step: each takes a statement."""


@dataclass(frozen=True, slots=True)
class PublishedEvents:
    """Result of one step of publishing pending events."""

    count: int
    after: UUID | None = None
    """Cursor: the last schedule of this step. None: there are no more."""
    failures: Mapping[UUID, str] = field(default_factory=dict)
    """Schedules whose events can't be written, with the reason. Their events stay pending."""


async def read_event_schedule(
    connection: AsyncConnection, schedule_id: UUID, *, host_id: UUID | None
) -> Schedule | None:
    """Read a schedule without a lock. None: its target is not an event. Raises NotFoundError."""
    statement = select(schedule_t).where(
        schedule_t.c.schedule_id == schedule_id, schedule_t.c.deleted_ts.is_(None)
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None or (host_id is not None and row.host_id != host_id):
        raise NotFoundError("schedule", schedule_id)
    schedule = schedule_of(row)
    return schedule if schedule.spec.target.is_event else None


def pending_event_write(
    dialect: Dialect,
    schedule: Schedule,
    execution_id: UUID,
    fire_ts: datetime,
    args: Mapping[str, Any] | None,
) -> Write:
    """Build the write of a pending event.

    Raises InvalidError if the arguments can't be part of an event: later there is no caller to get the error.
    """
    target = schedule.spec.target.model_dump_json()
    plan_event(
        target,
        execution_id=execution_id,
        schedule_id=schedule.schedule_id,
        host_id=schedule.host_id,
        event_seq=1,
        fire_ts=fire_ts,
        args=args,
    )
    values = {
        "id": execution_id,
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "target": target,
        "args": None if args is None else dict(args),
        "fire_ts": fire_ts,
    }
    return row_of_values(dialect, pending_event_t, values)


class PendingEvents(Statements):
    async def publish(
        self, lease: Lease, *, limit: int, after: UUID | None = None, excluding: Collection[UUID] = ()
    ) -> PublishedEvents:
        """Assign offsets to pending events of this shard's schedules behind `after`. Raises FencedError."""
        if not await self._has_any():
            return PublishedEvents(0)

        async def work(connection: AsyncConnection) -> PublishedEvents:
            await require_lease(connection, lease)
            schedule_ids = await self._lock_schedules(connection, lease, after, excluding)
            rows = await self._read(connection, schedule_ids, limit)
            count, failures = await self._move(connection, rows)
            is_last = len(schedule_ids) < MAX_SCHEDULES
            return PublishedEvents(count, None if is_last else schedule_ids[-1], failures)

        return await self._database.write(Pool.FIRING, work)

    async def _has_any(self) -> bool:
        """Check for pending events without a transaction, because there are nearly always none."""
        return (
            await self._database.fetch(Pool.FIRING, select(pending_event_t.c.id).limit(1))
        ).first() is not None

    async def _lock_schedules(
        self, connection: AsyncConnection, lease: Lease, after: UUID | None, excluding: Collection[UUID]
    ) -> list[UUID]:
        waiting = select(pending_event_t.c.schedule_id)
        if after is not None:
            waiting = waiting.where(pending_event_t.c.schedule_id > after)
        if excluding:
            excluded = self._dialect.rows(
                "excluded", {"schedule_id": Uuid()}, [(each,) for each in excluding]
            )
            waiting = waiting.where(pending_event_t.c.schedule_id.not_in(select(excluded.c.schedule_id)))
        statement = (
            select(schedule_t.c.schedule_id)
            .where(schedule_t.c.schedule_id.in_(waiting), *is_of(lease.shard))
            .order_by(schedule_t.c.schedule_id)
            .limit(MAX_SCHEDULES)
            .with_for_update(key_share=True, skip_locked=True)
        )
        return list((await connection.execute(statement)).scalars())

    async def _read(
        self, connection: AsyncConnection, schedule_ids: Sequence[UUID], limit: int
    ) -> Sequence[Any]:
        # A separate statement, so that it sees everything committed before the schedules were locked.
        table = pending_event_t
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        statement = (
            select(table)
            .where(table.c.schedule_id.in_(select(wanted.c.schedule_id)))
            .order_by(table.c.fire_ts, table.c.id)
            .limit(limit)
        )
        return (await connection.execute(statement)).all() if schedule_ids else ()

    async def _move(self, connection: AsyncConnection, rows: Sequence[Any]) -> tuple[int, Mapping[UUID, str]]:
        """Write the events. Return their number, and the reason for each schedule whose events failed."""
        by_schedule: dict[UUID, list[Any]] = {}
        for row in rows:
            by_schedule.setdefault(row.schedule_id, []).append(row)
        planned: dict[UUID, NewEvent] = {}
        failures: dict[UUID, str] = {}
        for schedule_id, pending in by_schedule.items():
            latest = await connection.execute(
                select(schedule_t.c.event_seq).where(schedule_t.c.schedule_id == schedule_id)
            )
            first = latest.scalar_one() + 1
            try:
                events = [_event_of(row, first + number) for number, row in enumerate(pending)]
            except Exception as error:
                failures[schedule_id] = str(error) or type(error).__name__
                continue
            await next_event_seq(connection, schedule_id, len(events))
            planned |= {event.id: event for event in events}
        in_order = [(row, planned[row.id]) for row in rows if row.id in planned]
        if not in_order:
            return 0, failures
        gone = self._dialect.rows("gone", {"id": Uuid()}, [(row.id,) for row, _event in in_order])
        await connection.execute(delete(pending_event_t).where(pending_event_t.c.id.in_(select(gone.c.id))))
        await record_status(
            connection,
            self._dialect,
            [LastRun(row.schedule_id, row.fire_ts, Status.SUCCESS, row.id) for row, _event in in_order],
        )
        await write_events(connection, self._dialect, [event for _row, event in in_order])
        return len(in_order), failures


def _event_of(row: Any, event_seq: int) -> NewEvent:
    return plan_event(
        row.target,
        execution_id=row.id,
        schedule_id=row.schedule_id,
        host_id=row.host_id,
        event_seq=event_seq,
        fire_ts=row.fire_ts,
        args=row.args,
    )
