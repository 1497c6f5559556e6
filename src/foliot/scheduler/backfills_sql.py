"""Statements on `backfill_t`, and the executions that backfills create.

A step is one transaction: check the fence, lock the schedule, insert the rows, store the position after them.
So a backfill continues exactly where it was when its leader is killed at any line, and of two leaders one is
fenced. Backfills create one execution per fire time: it is unique by schedule and fire time, and exists
beside the scheduled execution of that time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.cancellation import cancel_locked
from foliot.db.rows.event_runs import say_events
from foliot.db.rows.execution_inserts import know_queue, lock_schedule
from foliot.db.rows.execution_rows import requested_execution
from foliot.db.rows.from_row import from_row
from foliot.db.rows.ledger import count_open
from foliot.db.rows.row_locks import lock_executions
from foliot.db.rows.schedule_rows import schedule_of
from foliot.db.rows.shard_rows import is_of
from foliot.db.statements import Statements, transaction
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.db.tables.schedules import backfill_t, schedule_t
from foliot.model.backfill import Backfill, BackfillState
from foliot.model.errors import NotFoundError
from foliot.model.event import CancelledExecution, FiredExecution
from foliot.model.execution import CLAIMABLE, FINAL, Status, TriggeredBy
from foliot.model.ids import ids_at, new_id
from foliot.model.instant import EPOCH
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule
from foliot.planning.backfill import BackfillStep, admit_backfill
from foliot.planning.change import Author
from foliot.planning.definition import compile_spec
from foliot.planning.overlap import NONE_OPEN, OpenCounts, count_admissible
from foliot.scheduler.leases.leases_sql import require_lease

# A literal, not a parameter: PostgreSQL then uses the partial index in prepared statements too.
_IS_OF_BACKFILL = text("triggered_by = 'backfill'")


PlanBackfill = Callable[[Schedule, datetime, datetime, int], BackfillStep]
"""(schedule, position, end, max number of times to fire) -> the next step of the backfill."""


@dataclass(frozen=True, slots=True)
class BackfillAdvance:
    """Result of one step of a backfill."""

    created: int = 0
    ready: int = 0
    """How many of the created executions may run now. The others are held."""
    has_moved: bool = False
    """The position moved, though perhaps no time fired."""
    is_over: bool = False
    has_events: bool = False
    """Events were written to the outbox."""
    fired: Sequence[FiredExecution] = ()


class CancelledBackfill(NamedTuple):
    backfill: Backfill
    cancelled: Sequence[CancelledExecution] = ()


class _Made(NamedTuple):
    created: int
    ready: int
    """How many of them may run immediately."""
    events: Mapping[UUID, datetime] = MappingProxyType({})
    """Fire times by execution id, if the target is an event. Writing the events completes the executions."""
    at: datetime = EPOCH
    fired: Sequence[FiredExecution] = ()


def _fired(schedule: Schedule, row: Mapping[str, Any]) -> FiredExecution:
    """Describe an inserted row for observers. A run of a backfill is never late, so its lateness is 0."""
    return FiredExecution(
        row["execution_id"],
        schedule.schedule_id,
        row["fire_ts"],
        0.0,
        0,
        schedule.spec.name,
        schedule.spec.queue,
        schedule.aggregate_version,
    )


class Backfills(Statements):
    # --- requesting and reading -------------------------------------------------------------------

    @transaction(Pool.API)
    async def create(
        self,
        connection: AsyncConnection,
        schedule_id: UUID,
        from_ts: datetime,
        to_ts: datetime,
        author: Author,
        *,
        backfill_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> Backfill:
        """Request runs for the fire times in [from_ts, to_ts). Raises InvalidError, NotFoundError.

        If a backfill with `backfill_id` exists already, return it.
        """
        schedule = await lock_schedule(connection, schedule_id, host_id=host_id)
        if backfill_id is not None and await _exists(connection, backfill_id):
            return await _read(connection, backfill_id, None)
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        cadence = compile_spec(schedule.spec, schedule_id, schedule.effective_ts)
        total = admit_backfill(schedule, cadence, from_ts, to_ts, now)
        identity = backfill_id or new_id(now)
        await connection.execute(
            insert(backfill_t).values(
                backfill_id=identity,
                schedule_id=schedule_id,
                host_id=schedule.host_id,
                from_ts=from_ts,
                to_ts=to_ts,
                position_ts=from_ts,
                state=BackfillState.RUNNING.value,
                total_count=total,
                requested_by=author.name,
                created_ts=now,
                updated_ts=now,
            )
        )
        await record_audit(
            connection,
            self._dialect,
            author,
            Action.BACKFILL_CREATED,
            identity,
            host_id=schedule.host_id,
            now=now,
            after={
                "schedule_id": str(schedule_id),
                "from_ts": from_ts.isoformat(),
                "to_ts": to_ts.isoformat(),
            },
        )
        return await _read(connection, identity, None)

    async def get(self, backfill_id: UUID, *, host_id: UUID | None = None) -> Backfill:
        async with self._database.read(Pool.API) as connection:
            return await _read(connection, backfill_id, host_id)

    async def for_schedule(
        self, schedule_id: UUID, *, host_id: UUID | None = None, after: UUID | None = None, limit: int = 50
    ) -> list[Backfill]:
        """Return a page of one schedule's backfills, latest first. `after`: last of the previous page."""
        statement = (
            _select()
            .where(backfill_t.c.schedule_id == schedule_id)
            .order_by(backfill_t.c.backfill_id.desc())
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(backfill_t.c.backfill_id < after)
        if host_id is not None:
            statement = statement.where(backfill_t.c.host_id == host_id)
        return [_backfill_of(row) for row in await self._database.fetch(Pool.API, statement)]

    @transaction(Pool.API)
    async def cancel(
        self, connection: AsyncConnection, backfill_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> CancelledBackfill:
        """Create no more executions, and cancel the waiting ones; running ones continue. Idempotent."""
        known = await self._locked(connection, backfill_id)
        if known is None or (host_id is not None and known.host_id != host_id):
            raise NotFoundError("backfill", backfill_id)
        if known.state == BackfillState.RUNNING.value:
            await self._end(connection, backfill_id, BackfillState.CANCELLED)
        rows = await lock_executions(
            connection,
            self._dialect,
            execution_t.c.schedule_id == known.schedule_id,
            _IS_OF_BACKFILL,
            execution_t.c.fire_ts >= known.from_ts,
            execution_t.c.fire_ts < known.position_ts,
            execution_t.c.status.in_([each.value for each in CLAIMABLE]),
        )
        message = "its backfill was cancelled" + (f" by {author.name}" if author.name else "")
        cancelled = await cancel_locked(
            connection, self._dialect, rows, reason="backfill cancelled", error=message
        )
        await record_audit(
            connection,
            self._dialect,
            author,
            Action.BACKFILL_CANCELLED,
            backfill_id,
            host_id=known.host_id,
            after={"schedule_id": str(known.schedule_id)},
        )
        return CancelledBackfill(await _read(connection, backfill_id, None), cancelled)

    # --- running ----------------------------------------------------------------------------------

    async def running(self, shard: Shard, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return unfinished backfills of the shard's schedules, in order of their ids."""
        statement = (
            select(backfill_t.c.backfill_id)
            .join(schedule_t, schedule_t.c.schedule_id == backfill_t.c.schedule_id)
            .where(backfill_t.c.state == text("'running'"), *is_of(shard))
            .order_by(backfill_t.c.backfill_id)
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(backfill_t.c.backfill_id > after)
        return list((await self._database.fetch(Pool.FIRING, statement)).scalars())

    @transaction(Pool.FIRING)
    async def step(
        self,
        connection: AsyncConnection,
        lease: Lease,
        backfill_id: UUID,
        plan: PlanBackfill,
        *,
        limit: int,
        max_open: int,
    ) -> BackfillAdvance:
        """Create the next executions and store the new position, in one transaction. Raises FencedError.

        Creates at most `limit` executions, and keeps up to `max_open` backfill executions open per schedule.
        If `plan` raises, the exception propagates and nothing is written. A backfill of a deleted schedule
        is cancelled.
        """
        await require_lease(connection, lease)
        row = await self._schedule_row(connection, backfill_id)
        if row is not None and row.slot % lease.shard.of != lease.shard.number:
            return BackfillAdvance()
        backfill = await self._locked(connection, backfill_id)
        if backfill is None or backfill.state != BackfillState.RUNNING.value:
            return BackfillAdvance(is_over=True)
        if row is None:
            await self._end(connection, backfill_id, BackfillState.CANCELLED)
            return BackfillAdvance(is_over=True)
        schedule = schedule_of(row)
        room = min(limit, max_open - await self._count_open(connection, schedule.schedule_id))
        opened = await self._opened(connection, schedule)
        if opened is not None:
            room, _ready = count_admissible(schedule.spec.overlap, opened, room)
        if room < 1:
            return BackfillAdvance()
        planned = plan(schedule, backfill.position_ts, backfill.to_ts, room)
        made = await self._make(connection, schedule, planned.fire_times, backfill.requested_by, opened)
        await connection.execute(
            update(backfill_t)
            .where(backfill_t.c.backfill_id == backfill_id)
            .values(
                position_ts=planned.position_ts,
                state=(BackfillState.DONE if planned.is_last else BackfillState.RUNNING).value,
                total_count=backfill_t.c.total_count - planned.passed_over,
                created_count=backfill_t.c.created_count + made.created,
                existing_count=backfill_t.c.existing_count + len(planned.fire_times) - made.created,
                updated_ts=self._dialect.now(),
            )
        )
        if made.events:
            await say_events(connection, self._dialect, schedule, made.events, made.at)
        return BackfillAdvance(
            made.created,
            0 if made.events else made.ready,
            has_moved=True,
            is_over=planned.is_last,
            has_events=bool(made.events),
            fired=made.fired,
        )

    async def _schedule_row(self, connection: AsyncConnection, backfill_id: UUID) -> Any:
        """Lock and return the schedule's row; None: the schedule is deleted."""
        mine = select(backfill_t.c.schedule_id).where(backfill_t.c.backfill_id == backfill_id)
        statement = (
            select(schedule_t)
            .where(schedule_t.c.schedule_id == mine.scalar_subquery(), schedule_t.c.deleted_ts.is_(None))
            .with_for_update()
        )
        return (await connection.execute(statement)).one_or_none()

    async def _locked(self, connection: AsyncConnection, backfill_id: UUID) -> Any:
        statement = select(backfill_t).where(backfill_t.c.backfill_id == backfill_id).with_for_update()
        return (await connection.execute(statement)).one_or_none()

    async def _end(self, connection: AsyncConnection, backfill_id: UUID, state: BackfillState) -> None:
        await connection.execute(
            update(backfill_t)
            .where(backfill_t.c.backfill_id == backfill_id)
            .values(state=state.value, updated_ts=self._dialect.now())
        )

    async def _opened(self, connection: AsyncConnection, schedule: Schedule) -> OpenCounts | None:
        """Count open executions for the overlap policy; None for an event, which is never open."""
        if schedule.spec.target.is_event:
            return None
        counted = await count_open(connection, self._dialect, [schedule.schedule_id])
        return counted.get(schedule.schedule_id, NONE_OPEN)

    async def _count_open(self, connection: AsyncConnection, schedule_id: UUID) -> int:
        statement = (
            select(func.count())
            .select_from(execution_t)
            .where(execution_t.c.schedule_id == schedule_id, text(IS_OPEN), _IS_OF_BACKFILL)
        )
        return int((await connection.execute(statement)).scalar_one())

    async def _make(
        self,
        connection: AsyncConnection,
        schedule: Schedule,
        fire_times: Sequence[datetime],
        requested_by: str | None,
        opened: OpenCounts | None,
    ) -> "_Made":
        """Create executions for these fire times. `opened` None: all of them may run immediately.

        An execution that was cancelled before it started is created again: the new request asks for it.
        """
        if not fire_times:
            return _Made(0, 0)
        await know_queue(connection, self._dialect, schedule.host_id, schedule.spec.queue)
        known = await self._known(connection, schedule.schedule_id, fire_times)
        missing = [at for at in fire_times if at not in known or _is_unstarted(known[at])]
        is_event = schedule.spec.target.is_event
        free = len(missing)
        if opened is not None:
            _inserted, free = count_admissible(schedule.spec.overlap, opened, len(missing))
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        next_id = ids_at(now)
        rows = [
            requested_execution(
                schedule,
                known[at].execution_id if at in known else next_id(),
                at,
                by=TriggeredBy.BACKFILL,
                user=requested_by,
                now=now,
                is_ready=number < free,
            )
            for number, at in enumerate(missing)
        ]
        again = [row["execution_id"] for row in rows if row["fire_ts"] in known]
        if again:
            await connection.execute(delete(execution_t).where(execution_t.c.execution_id.in_(again)))
        if rows:
            await connection.execute(insert(execution_t), rows)
        said = {row["execution_id"]: row["fire_ts"] for row in rows} if is_event else {}
        return _Made(len(missing), free, said, now, [_fired(schedule, row) for row in rows])

    async def _known(
        self, connection: AsyncConnection, schedule_id: UUID, fire_times: Sequence[datetime]
    ) -> dict[datetime, Any]:
        """Lock and return the executions that backfills have already created for these fire times."""
        rows = await lock_executions(
            connection,
            self._dialect,
            execution_t.c.schedule_id == schedule_id,
            _IS_OF_BACKFILL,
            execution_t.c.fire_ts.between(fire_times[0], fire_times[-1]),
        )
        return {row.fire_ts: row for row in rows}


def _is_unstarted(row: Any) -> bool:
    return bool(row.status == Status.CANCELLED.value and row.attempt == 0)


def _ended_count() -> ColumnElement[int]:
    """Count the ended executions of a backfill: one range of the index of its schedule's backfilled times."""
    return (
        select(func.count())
        .select_from(execution_t)
        .where(
            execution_t.c.schedule_id == backfill_t.c.schedule_id,
            _IS_OF_BACKFILL,
            execution_t.c.fire_ts >= backfill_t.c.from_ts,
            execution_t.c.fire_ts < backfill_t.c.position_ts,
            execution_t.c.status.in_([each.value for each in FINAL]),
        )
        .correlate(backfill_t)
        .scalar_subquery()
    )


async def _exists(connection: AsyncConnection, backfill_id: UUID) -> bool:
    wanted = select(backfill_t.c.backfill_id).where(backfill_t.c.backfill_id == backfill_id)
    return (await connection.execute(wanted)).first() is not None


def _select() -> Select[Any]:
    return select(backfill_t, _ended_count().label("ended_count"))


async def _read(connection: AsyncConnection, backfill_id: UUID, host_id: UUID | None) -> Backfill:
    statement = _select().where(backfill_t.c.backfill_id == backfill_id)
    row = (await connection.execute(statement)).one_or_none()
    if row is None or (host_id is not None and row.host_id != host_id):
        raise NotFoundError("backfill", backfill_id)
    return _backfill_of(row)


def _backfill_of(row: Any) -> Backfill:
    return from_row(Backfill, row, state=BackfillState(row.state))
