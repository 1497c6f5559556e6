"""What the leader's janitor does. All of it under the fence, all of it in bounded batches."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    String,
    Text,
    Uuid,
    case,
    delete,
    func,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.event import LostAttempt
from foliot.model.execution import FINAL, Status, TriggeredBy
from foliot.model.ids import first_id_at
from foliot.model.lease import Lease
from foliot.model.policy import OverlapPolicy, Priority
from foliot.model.schedule import ScheduleSpec
from foliot.planning.definition import Policies
from foliot.planning.outcome import Outcome, outcome_of
from foliot.store.attempts import EndedAttempt, record_attempts
from foliot.store.database import Database
from foliot.store.delays import is_waiting_for_end, set_next_after_end
from foliot.store.dialect import Limit, Pool
from foliot.store.event_pruning import prune_consumed, prune_events
from foliot.store.leases import require_lease
from foliot.store.schema import IS_OPEN, attempt_t, execution_log_t, execution_t, schedule_t
from foliot.store.settlement import agent_url_of
from foliot.store.shards import is_of
from foliot.store.status import LastRun, record_status
from foliot.store.types import Instant
from foliot.store.versions import read_specs

STOPPED_FOR_S = 10.0
"""A lease that ran out so long ago, of a row that can't be locked, is kept by a client that has stopped."""
LOST = "its worker vanished: the lease ran out"
UNREPORTED = "the agent did not report its end within timeout_seconds"


class Upkeep:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    # --- rescue -----------------------------------------------------------------------------------

    async def rescue(self, lease: Lease, *, limit: int) -> list[LostAttempt]:
        async def work(connection: AsyncConnection) -> list[LostAttempt]:
            await require_lease(connection, lease)
            statement = (
                select(execution_t, schedule_t.c.schedule_name, self._dialect.now().label("store_now"))
                .join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
                .where(
                    execution_t.c.status == text("'running'"),
                    # A query of its own: called for every row, the clock would be no bound of the index.
                    execution_t.c.lease_until < select(self._dialect.now()).scalar_subquery(),
                    *is_of(lease.shard),
                )
                .order_by(execution_t.c.lease_until)
                .limit(limit)
                .with_for_update(of=execution_t, skip_locked=True)
            )
            rows = (await connection.execute(statement)).all()
            if not rows:
                await self._end_stopped(connection)
                return []
            versions = sorted({(row.schedule_id, row.aggregate_version) for row in rows})
            specs = await read_specs(connection, self._dialect, versions)
            outcomes = {
                row.execution_id: _outcome_of_lost(row, specs.get((row.schedule_id, row.aggregate_version)))
                for row in rows
            }
            await self._write_rescued(connection, rows, outcomes)
            return [
                _lost(
                    row,
                    outcomes[row.execution_id].status,
                    specs.get((row.schedule_id, row.aggregate_version)),
                )
                for row in rows
            ]

        return await self._database.write(Pool.FIRING, work)

    async def _end_stopped(self, connection: AsyncConnection) -> None:
        """Free what a worker keeps locked that was stopped while it settled."""
        long_ago = self._dialect.plus(self._dialect.now(), -STOPPED_FOR_S)
        stuck = (
            select(execution_t.c.execution_id)
            .where(
                execution_t.c.status == text("'running'"),
                execution_t.c.lease_until < select(long_ago).scalar_subquery(),
            )
            .limit(1)
        )
        if (await connection.execute(stuck)).first() is not None:
            limit = Limit(idle_s=STOPPED_FOR_S)
            await self._dialect.end_overdue(connection, execution_t, limit, only_stopped=True)

    async def _write_rescued(
        self, connection: AsyncConnection, rows: Sequence[Any], outcomes: dict[UUID, Outcome]
    ) -> None:
        lost = self._dialect.rows(
            "lost",
            {
                "execution_id": Uuid(),
                "attempt": Integer(),
                "status": String(),
                "ready_ts": Instant(),
                "sla_s": Float(),
                "error": Text(),
            },
            [
                (
                    row.execution_id,
                    row.attempt,
                    outcomes[row.execution_id].status.value,
                    outcomes[row.execution_id].ready_ts,
                    Priority(row.priority).sla_s,
                    UNREPORTED if row.is_remote else LOST,
                )
                for row in rows
            ],
        )
        is_again = lost.c.status == Status.RETRYING.value
        now = self._dialect.now()
        await connection.execute(
            update(execution_t)
            .where(
                execution_t.c.execution_id == lost.c.execution_id,
                execution_t.c.attempt == lost.c.attempt,
                execution_t.c.status == Status.RUNNING.value,
            )
            .values(
                status=lost.c.status,
                failed_attempts=execution_t.c.failed_attempts + 1,
                lease_until=null(),
                error=lost.c.error,
                ended_ts=case((~is_again, now)),
                ready_ts=case((is_again, lost.c.ready_ts), else_=execution_t.c.ready_ts),
                due_by_ts=case(
                    (is_again, self._dialect.plus(lost.c.ready_ts, lost.c.sla_s)),
                    else_=execution_t.c.due_by_ts,
                ),
            )
        )
        await record_attempts(
            connection,
            self._dialect,
            [
                EndedAttempt(
                    row.execution_id,
                    row.attempt,
                    _ended_as(row),
                    row.worker_id,
                    row.started_ts,
                    UNREPORTED if row.is_remote else LOST,
                )
                for row in rows
            ],
        )
        await record_status(
            connection,
            self._dialect,
            [
                LastRun(row.schedule_id, row.started_ts, outcomes[row.execution_id].status, row.execution_id)
                for row in rows
                if row.started_ts is not None and outcomes[row.execution_id].status in FINAL
            ],
        )

    # --- held executions --------------------------------------------------------------------------

    async def release_held(self, lease: Lease, *, limit: int) -> int:
        async def work(connection: AsyncConnection) -> int:
            await require_lease(connection, lease)
            held = (
                select(execution_t.c.schedule_id)
                .join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
                .where(
                    execution_t.c.status == text("'pending'"),
                    execution_t.c.due_by_ts.is_(None),
                    _has_room(),
                    *is_of(lease.shard),
                )
                .distinct()
                .limit(limit)
            )
            schedule_ids = (await connection.execute(held)).scalars().all()
            if not schedule_ids:
                return 0
            wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
            locked = await connection.execute(
                select(schedule_t.c.schedule_id, schedule_t.c.policies)
                .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
                .order_by(schedule_t.c.schedule_id)
                .with_for_update()
            )
            allowed = {row.schedule_id: _allowed(Policies.model_validate(row.policies)) for row in locked}
            waiting = await self._open_of(connection, list(allowed))
            released = [
                each for key, most in allowed.items() for each in _releasable(waiting.get(key, []), most)
            ]
            await self._release(connection, released)
            return len(released)

        return await self._database.write(Pool.FIRING, work)

    async def _open_of(
        self, connection: AsyncConnection, schedule_ids: Sequence[UUID]
    ) -> dict[UUID, list[Any]]:
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        # A backfill must not hold up the schedule's own runs, which are younger than all of it.
        is_of_backfill = case((execution_t.c.triggered_by == TriggeredBy.BACKFILL.value, 1), else_=0)
        result = await connection.execute(
            select(
                execution_t.c.schedule_id,
                execution_t.c.execution_id,
                execution_t.c.due_by_ts,
                execution_t.c.priority,
            )
            .where(execution_t.c.schedule_id.in_(select(wanted.c.schedule_id)), text(IS_OPEN))
            .order_by(is_of_backfill, execution_t.c.fire_ts, execution_t.c.execution_id)
        )
        found: dict[UUID, list[Any]] = {}
        for row in result:
            found.setdefault(row.schedule_id, []).append(row)
        return found

    async def _release(self, connection: AsyncConnection, rows: Sequence[Any]) -> None:
        if not rows:
            return
        free = self._dialect.rows(
            "free",
            {"execution_id": Uuid(), "sla_s": Float()},
            [(row.execution_id, Priority(row.priority).sla_s) for row in rows],
        )
        now = self._dialect.now()
        await connection.execute(
            update(execution_t)
            .where(
                execution_t.c.execution_id == free.c.execution_id,
                execution_t.c.status == Status.PENDING.value,
                execution_t.c.due_by_ts.is_(None),
            )
            .values(ready_ts=now, due_by_ts=self._dialect.plus(now, free.c.sla_s))
        )

    # --- delays and history -----------------------------------------------------------------------

    async def restart_delays(self, lease: Lease, *, limit: int) -> list[UUID]:
        async def work(connection: AsyncConnection) -> list[UUID]:
            await require_lease(connection, lease)
            waiting = (
                select(schedule_t.c.schedule_id)
                .where(*is_waiting_for_end(), *is_of(lease.shard))
                .order_by(schedule_t.c.schedule_id)
                .limit(limit)
            )
            schedule_ids = (await connection.execute(waiting)).scalars().all()
            if not schedule_ids:
                return []
            return await set_next_after_end(connection, self._dialect, schedule_ids)

        return await self._database.write(Pool.FIRING, work)

    async def prune(self, lease: Lease, *, before: datetime, limit: int) -> int:
        # Ids grow with time, so old history is a range of the primary key; no index on a date is kept.
        async def work(connection: AsyncConnection) -> int:
            await require_lease(connection, lease)
            old = (
                select(execution_t.c.execution_id)
                .where(
                    execution_t.c.execution_id < first_id_at(before),
                    execution_t.c.status.in_([each.value for each in FINAL]),
                )
                .order_by(execution_t.c.execution_id)
                .limit(limit)
                # One that somebody tries again at this moment stays.
                .with_for_update(skip_locked=True)
            )
            ids = (await connection.execute(old)).scalars().all()
            if not ids:
                return 0
            gone = self._dialect.rows("gone", {"execution_id": Uuid()}, [(each,) for each in ids])
            for table in (execution_log_t, attempt_t, execution_t):
                await connection.execute(
                    delete(table).where(table.c.execution_id.in_(select(gone.c.execution_id)))
                )
            return len(ids)

        return await self._database.write(Pool.FIRING, work)

    async def prune_events(self, lease: Lease, *, before: datetime, limit: int) -> int:
        async def work(connection: AsyncConnection) -> int:
            await require_lease(connection, lease)
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            events = await prune_events(connection, self._dialect, before, limit)
            return max(events, await prune_consumed(connection, now, before, limit))

        return await self._database.write(Pool.FIRING, work)


def _outcome_of_lost(row: Any, spec: Any) -> Outcome:
    if row.cancel_requested:
        return Outcome(Status.CANCELLED)
    if spec is None:
        return Outcome(_ended_as(row))
    return outcome_of(
        _ended_as(row),
        retry=spec.retry,
        delivery=spec.delivery,
        failures=row.failed_attempts + 1,
        execution_id=row.execution_id,
        now=row.store_now,
    )


def _lost(row: Any, status: Status, spec: ScheduleSpec | None) -> LostAttempt:
    started_ts = row.started_ts or row.store_now
    return LostAttempt(
        row.execution_id,
        row.schedule_id,
        row.schedule_name,
        row.attempt,
        status,
        UNREPORTED if row.is_remote else LOST,
        row.worker_id,
        row.queue,
        row.started_ts,
        row.trace_context,
        max(0.0, (row.store_now - started_ts).total_seconds()),
        bool(row.is_remote),
        None if spec is None else agent_url_of(spec),
    )


def _ended_as(row: Any) -> Status:
    """How the attempt ended: nobody knows, unless it was with an agent, whose lease is the timeout."""
    return Status.TIMEOUT if row.is_remote else Status.UNKNOWN


def _has_room() -> ColumnElement[bool]:
    """Whether one more may run. Those that must wait are left out here, or a batch of them would keep all
    others waiting."""
    ready = execution_t.alias("ready")
    count = (
        select(func.count())
        .select_from(ready)
        .where(ready.c.schedule_id == schedule_t.c.schedule_id, text(IS_OPEN), ready.c.due_by_ts.is_not(None))
        .scalar_subquery()
    )
    overlap = schedule_t.c.policies["overlap"]
    return or_(
        overlap["policy"].as_string() == OverlapPolicy.ALLOW.value,
        count < func.coalesce(overlap["max_instances"].as_integer(), 1),
    )


def _allowed(policies: Policies) -> int | None:
    overlap = policies.overlap
    return None if overlap.policy is OverlapPolicy.ALLOW else overlap.max_instances


def _releasable(rows: Sequence[Any], most: int | None) -> Sequence[Any]:
    held = [row for row in rows if row.due_by_ts is None]
    if most is None:
        return held
    return held[: max(0, most - (len(rows) - len(held)))]
