"""Statements of the leader's janitor. All run under the fence and in bounded batches."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Float,
    Integer,
    String,
    Text,
    Uuid,
    and_,
    case,
    delete,
    literal,
    null,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Limit, Pool
from foliot.db.rows.attempt_rows import EndedAttempt, record_attempts
from foliot.db.rows.delay_rows import is_waiting_for_end, set_next_after_end
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.db.rows.shard_rows import is_of
from foliot.db.rows.version_rows import existing_versions, read_specs
from foliot.db.statements import Statements, transaction
from foliot.db.tables.executions import attempt_t, execution_log_t, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.db.types import Instant
from foliot.model.event import LostAttempt
from foliot.model.execution import FINAL, Status
from foliot.model.ids import first_id_at
from foliot.model.lease import Lease
from foliot.model.policy import priority_from
from foliot.model.schedule import ScheduleSpec
from foliot.planning.outcome import Outcome, outcome_of
from foliot.scheduler.event_pruning_sql import prune_consumed, prune_events
from foliot.scheduler.held_sql import release_locked, scan_held
from foliot.scheduler.leases.leases_sql import require_lease

STOPPED_FOR_S = 10.0
"""If a lease expired this long ago and its row is still locked, the client holding the lock has stopped."""
MAX_RELEASED = 500
UNREADABLE_FOR_S = 60.0
"""How long a lost execution is left to other instances if this version can't read its definition."""
LOST = "its worker vanished: the lease ran out"
UNREPORTED = "the agent did not report its end within timeout_seconds"


class Released(NamedTuple):
    """Result of a scan of held executions."""

    released: int
    """How many may run now."""
    position: UUID | None
    """Cursor: the schedule to continue after. None: the scan reached the end."""


class Restarted(NamedTuple):
    """Result of a scan of `delay` schedules that wait for the end of a run."""

    schedule_ids: list[UUID]
    position: UUID | None
    """Cursor: the schedule to continue after. None: the scan reached the end."""


class Upkeep(Statements):
    # --- rescue -----------------------------------------------------------------------------------

    async def rescue(self, lease: Lease, *, limit: int, until: datetime | None = None) -> list[LostAttempt]:
        """Take back executions whose worker's lease expired: they are retried, fail, or become `unknown`.

        With `until`, the lease must also have ended before it, even if the database's clock is later.
        """
        ran_out = execution_t.c.lease_until < select(self._dialect.now()).scalar_subquery()
        if until is not None:
            ran_out = and_(ran_out, execution_t.c.lease_until < literal(until, Instant))

        async def work(connection: AsyncConnection) -> list[LostAttempt]:
            await require_lease(connection, lease)
            statement = (
                select(execution_t, schedule_t.c.schedule_name, self._dialect.now().label("store_now"))
                .join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
                .where(
                    execution_t.c.status == text("'running'"),
                    # A subquery: if the clock were called per row, it could not bound the index scan.
                    ran_out,
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
            rows = await self._leave_unreadable(connection, rows, specs)
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

        return await self._database.write(Pool.UPKEEP, work)

    async def _leave_unreadable(
        self, connection: AsyncConnection, rows: Sequence[Any], specs: Mapping[tuple[UUID, int], ScheduleSpec]
    ) -> Sequence[Any]:
        """Skip executions whose definition only a newer version can read. Return the other rows.

        The skipped ones are for a leader of that version. Their lease is extended, so that they do not fill
        the next batch.
        """
        missing = {version for row in rows if (version := _version_of(row)) not in specs}
        if not missing:
            return rows
        unreadable = await existing_versions(connection, self._dialect, sorted(missing))
        left = [row for row in rows if _version_of(row) in unreadable and not row.cancel_requested]
        if not left:
            return rows
        kept = self._dialect.rows("kept", {"execution_id": Uuid()}, [(row.execution_id,) for row in left])
        await connection.execute(
            update(execution_t)
            .where(execution_t.c.execution_id.in_(select(kept.c.execution_id)))
            .values(lease_until=self._dialect.plus(self._dialect.now(), UNREADABLE_FOR_S))
        )
        left_ids = {row.execution_id for row in left}
        return [row for row in rows if row.execution_id not in left_ids]

    async def _end_stopped(self, connection: AsyncConnection) -> None:
        """End the sessions of workers that stopped during a settle and still hold row locks."""
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
                    priority_from(row.priority).sla_s,
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

    async def release_held(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Released:
        """Let held executions run as far as overlap now allows, oldest first.

        Scans the next `limit` schedules with held executions, in order of their ids.
        """
        async with self._database.read(Pool.UPKEEP) as connection:
            scan = await scan_held(
                connection, lease.shard, after=after, limit=limit, max_released=MAX_RELEASED
            )

        async def work(connection: AsyncConnection) -> int:
            await require_lease(connection, lease)
            if not scan.schedule_ids:
                return 0
            return await release_locked(connection, self._dialect, scan.schedule_ids, limit=MAX_RELEASED)

        return Released(await self._database.write(Pool.UPKEEP, work), scan.position)

    # --- delays and history -----------------------------------------------------------------------

    async def restart_delays(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Restarted:
        """Set the next time of `delay` schedules that have no run in progress, in case a settle missed it.

        Scans the next `limit` of these schedules, in order of their ids.
        """
        waiting = (
            select(schedule_t.c.schedule_id)
            .where(*is_waiting_for_end(), *is_of(lease.shard))
            .order_by(schedule_t.c.schedule_id)
            .limit(limit)
        )
        if after is not None:
            waiting = waiting.where(schedule_t.c.schedule_id > after)
        found = (await self._database.fetch(Pool.UPKEEP, waiting)).scalars().all()

        async def work(connection: AsyncConnection) -> list[UUID]:
            await require_lease(connection, lease)
            return await set_next_after_end(connection, self._dialect, found) if found else []

        restarted = await self._database.write(Pool.UPKEEP, work)
        return Restarted(restarted, found[-1] if len(found) == limit else None)

    @transaction(Pool.UPKEEP)
    async def prune(self, connection: AsyncConnection, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete up to `limit` finished executions older than `before`, with attempts and logs."""
        # Ids grow with time, so old history is a range of the primary key. No index on a date is needed.
        await require_lease(connection, lease)
        old = (
            select(execution_t.c.execution_id)
            .where(
                execution_t.c.execution_id < first_id_at(before),
                execution_t.c.status.in_([each.value for each in FINAL]),
            )
            .order_by(execution_t.c.execution_id)
            .limit(limit)
            # Skips an execution that is being retried at this moment.
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

    @transaction(Pool.UPKEEP)
    async def prune_events(
        self, connection: AsyncConnection, lease: Lease, *, before: datetime, limit: int
    ) -> int:
        """Delete old events that all consumers and the relay have passed, and unneeded consumer records.

        At most `limit` rows of each. Return the largest of the counts.
        """
        await require_lease(connection, lease)
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        events = await prune_events(connection, self._dialect, before, limit)
        return max(events, await prune_consumed(connection, now, before, limit))


def _version_of(row: Any) -> tuple[UUID, int]:
    return (row.schedule_id, row.aggregate_version)


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
        None if spec is None else spec.target.agent_url,
    )


def _ended_as(row: Any) -> Status:
    """How the attempt ended: `unknown`, or `timeout` if it was with an agent, whose lease is the timeout."""
    return Status.TIMEOUT if row.is_remote else Status.UNKNOWN
