"""What workers do: claim, renew, settle. Each is a fixed number of statements for any number of executions.

`attempt` is the fence: it grows with every claim, and renewing or settling requires it. So of a worker that
was stopped past its lease and the one that took over, only the latter can settle.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Float,
    Integer,
    String,
    Text,
    Uuid,
    and_,
    case,
    literal,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import IllegalTransitionError
from foliot.model.execution import FINAL, Status, TriggeredBy, can_become
from foliot.model.policy import Priority
from foliot.model.schedule import ScheduleSpec
from foliot.store.database import Database
from foliot.store.delays import set_next_after_end
from foliot.store.dialect import Dialect, Pool
from foliot.store.protocol import Claim, Renewal, Settlement
from foliot.store.schema import (
    attempt_t,
    execution_t,
    queue_t,
    schedule_status_t,
    schedule_version_t,
)
from foliot.store.types import Instant


class Work:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    async def queues(self, names: Sequence[str] | None) -> list[tuple[UUID, str]]:
        statement = select(queue_t.c.host_id, queue_t.c.queue).where(~queue_t.c.paused)
        if names is not None:
            statement = statement.where(queue_t.c.queue.in_(names))
        async with self._database.read(Pool.WORK) as connection:
            return [(row.host_id, row.queue) for row in await connection.execute(statement)]

    async def claim(
        self, worker_id: str, queues: Sequence[tuple[UUID, str]], *, limit: int, lease_s: float
    ) -> list[Claim]:
        if not queues or limit < 1:
            return []

        async def work(connection: AsyncConnection) -> list[Claim]:
            now = self._dialect.now()
            # Materialized: inlined, the pick may run more than once and claim more than the limit.
            picked = self._dialect.claimable(queues, limit).cte("picked").prefix_with("MATERIALIZED")
            result = await connection.execute(
                update(execution_t)
                .where(execution_t.c.execution_id.in_(select(picked.c.execution_id)))
                .values(
                    status=Status.RUNNING.value,
                    attempt=execution_t.c.attempt + 1,
                    worker_id=worker_id,
                    lease_until=self._dialect.plus(now, lease_s),
                    started_ts=now,
                    reason=null(),
                )
                .returning(
                    execution_t.c.execution_id,
                    execution_t.c.schedule_id,
                    execution_t.c.host_id,
                    execution_t.c.aggregate_version,
                    execution_t.c.fire_ts,
                    execution_t.c.attempt,
                    execution_t.c.failed_attempts,
                    execution_t.c.args,
                    execution_t.c.queue,
                    execution_t.c.priority,
                    execution_t.c.triggered_by,
                    execution_t.c.ready_ts,
                    execution_t.c.due_by_ts,
                    execution_t.c.started_ts,
                )
            )
            rows = sorted(result.all(), key=lambda row: (row.due_by_ts, row.execution_id))
            return [_claim_of(row) for row in rows]

        return await self._database.write(Pool.WORK, work)

    async def renew(self, worker_id: str, claims: Sequence[Claim], lease_s: float) -> Renewal:
        if not claims:
            return Renewal(frozenset(), frozenset())
        mine = _attempts(self._dialect, claims)

        async def work(connection: AsyncConnection) -> dict[UUID, bool]:
            result = await connection.execute(
                update(execution_t)
                .where(*_is_mine(mine, worker_id))
                .values(lease_until=self._dialect.plus(self._dialect.now(), lease_s))
                .returning(execution_t.c.execution_id, execution_t.c.cancel_requested)
            )
            return {row.execution_id: row.cancel_requested for row in result}

        kept = await self._database.write(Pool.WORK, work)
        lost = frozenset(claim.execution_id for claim in claims).difference(kept)
        return Renewal(lost, frozenset(key for key, is_cancelled in kept.items() if is_cancelled))

    async def settle(self, worker_id: str, settlements: Sequence[Settlement]) -> frozenset[UUID]:
        for each in settlements:
            if not can_become(Status.RUNNING, each.status):
                raise IllegalTransitionError(each.claim.execution_id, Status.RUNNING, each.status)
        if not settlements:
            return frozenset()

        async def work(connection: AsyncConnection) -> frozenset[UUID]:
            settled = await self._settle(connection, worker_id, settlements)
            done = [each for each in settlements if each.claim.execution_id in settled]
            await record_attempts(connection, self._dialect, done, worker_id)
            await self._record_status(connection, done)
            ended = {
                each.claim.schedule_id
                for each in done
                if each.is_delay and each.status in FINAL and each.claim.triggered_by is TriggeredBy.SCHEDULER
            }
            if ended:
                await set_next_after_end(connection, self._dialect, sorted(ended))
            return frozenset(each.claim.execution_id for each in settlements) - settled

        return await self._database.write(Pool.WORK, work)

    async def _settle(
        self, connection: AsyncConnection, worker_id: str, settlements: Sequence[Settlement]
    ) -> frozenset[UUID]:
        ended = self._dialect.rows(
            "ended",
            {
                "execution_id": Uuid(),
                "attempt": Integer(),
                "status": String(),
                "retry_in_s": Float(),
                "sla_s": Float(),
                "result": Text(),
                "error": Text(),
                "traceback": Text(),
                "duration_s": Float(),
                "is_failure": Boolean(),
                "is_final": Boolean(),
            },
            [
                (
                    each.claim.execution_id,
                    each.claim.attempt,
                    each.status.value,
                    each.retry_in_s,
                    each.claim.priority.sla_s,
                    each.result,
                    each.error,
                    each.traceback,
                    each.duration_s,
                    is_failure(each.attempt_status),
                    each.status in FINAL,
                )
                for each in settlements
            ],
        )
        now = self._dialect.now()
        again_at = self._dialect.plus(now, ended.c.retry_in_s)
        is_over = and_(execution_t.c.cancel_requested, ~ended.c.is_final)
        result = await connection.execute(
            update(execution_t)
            .where(*_is_mine(ended, worker_id))
            .values(
                # Whoever asked for it to stop does not want it tried again.
                status=case((is_over, Status.CANCELLED.value), else_=ended.c.status),
                lease_until=null(),
                failed_attempts=execution_t.c.failed_attempts + case((ended.c.is_failure, 1), else_=0),
                ended_ts=case((or_(ended.c.is_final, is_over), now)),
                duration_seconds=ended.c.duration_s,
                result=self._dialect.json(ended.c.result),
                error=ended.c.error,
                traceback=ended.c.traceback,
                ready_ts=case((ended.c.is_final, execution_t.c.ready_ts), else_=again_at),
                due_by_ts=case(
                    (ended.c.is_final, execution_t.c.due_by_ts),
                    else_=self._dialect.plus(again_at, ended.c.sla_s),
                ),
            )
            .returning(execution_t.c.execution_id)
        )
        return frozenset(result.scalars())

    async def _record_status(self, connection: AsyncConnection, done: Sequence[Settlement]) -> None:
        latest: dict[UUID, Settlement] = {}
        for each in done:
            if each.status is Status.PENDING:
                continue
            other = latest.get(each.claim.schedule_id)
            if other is None or other.claim.started_ts <= each.claim.started_ts:
                latest[each.claim.schedule_id] = each
        if not latest:
            return
        # In the order of schedule_id, so that two workers never wait for each other in a circle.
        new = self._dialect.rows(
            "new",
            {
                "schedule_id": Uuid(),
                "last_run_ts": Instant(),
                "last_status": String(),
                "last_execution_id": Uuid(),
            },
            [
                (key, each.claim.started_ts, each.status.value, each.claim.execution_id)
                for key, each in sorted(latest.items())
            ],
        )
        statement = self._dialect.insert(schedule_status_t).from_select(
            ["schedule_id", "last_run_ts", "last_status", "last_execution_id"],
            select(*new.c).where(true()),
        )
        table = schedule_status_t
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=[table.c.schedule_id],
                set_={
                    "last_run_ts": statement.excluded.last_run_ts,
                    "last_status": statement.excluded.last_status,
                    "last_execution_id": statement.excluded.last_execution_id,
                },
                where=statement.excluded.last_run_ts >= table.c.last_run_ts,
            )
        )

    async def progress(self, worker_id: str, claim: Claim, fraction: float, text: str) -> None:
        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                update(execution_t)
                .where(*_is_mine(_attempts(self._dialect, [claim]), worker_id))
                .values(progress={"fraction": fraction, "text": text})
            )

        await self._database.write(Pool.WORK, work)

    async def specs(self, versions: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], ScheduleSpec]:
        async with self._database.read(Pool.WORK) as connection:
            return await read_specs(connection, self._dialect, versions)


async def read_specs(
    connection: AsyncConnection, dialect: Dialect, versions: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], ScheduleSpec]:
    if not versions:
        return {}
    wanted = dialect.rows("wanted", {"schedule_id": Uuid(), "aggregate_version": Integer()}, versions)
    table = schedule_version_t
    result = await connection.execute(
        select(table.c.schedule_id, table.c.aggregate_version, table.c.document).join(
            wanted,
            and_(
                wanted.c.schedule_id == table.c.schedule_id,
                wanted.c.aggregate_version == table.c.aggregate_version,
            ),
        )
    )
    return {
        (row.schedule_id, row.aggregate_version): ScheduleSpec.model_validate(row.document) for row in result
    }


async def record_attempts(
    connection: AsyncConnection, dialect: Dialect, done: Sequence[Settlement], worker_id: str | None
) -> None:
    """Keep every attempt that did not succeed; one that was handed back was none."""
    failed = [each for each in done if each.attempt_status not in (Status.SUCCESS, Status.PENDING)]
    if not failed:
        return
    new = dialect.rows(
        "new",
        {
            "execution_id": Uuid(),
            "attempt": Integer(),
            "status": String(),
            "started_ts": Instant(),
            "duration_seconds": Float(),
            "error": Text(),
            "traceback": Text(),
        },
        [
            (
                each.claim.execution_id,
                each.claim.attempt,
                each.attempt_status.value,
                each.claim.started_ts,
                each.duration_s,
                each.error,
                each.traceback,
            )
            for each in failed
        ],
    )
    source = select(*new.c, dialect.now(), literal(worker_id)).where(true())
    names = [*(each.name for each in new.c), "ended_ts", "worker_id"]
    await connection.execute(dialect.insert(attempt_t).from_select(names, source).on_conflict_do_nothing())


def is_failure(status: Status) -> bool:
    """Whether an attempt that ended so counts against the retry budget."""
    return status in (Status.FAILED, Status.TIMEOUT, Status.UNKNOWN)


def _attempts(dialect: Dialect, claims: Sequence[Claim]) -> Any:
    return dialect.rows(
        "mine",
        {"execution_id": Uuid(), "attempt": Integer()},
        [(claim.execution_id, claim.attempt) for claim in claims],
    )


def _is_mine(rows: Any, worker_id: str) -> tuple[Any, ...]:
    return (
        execution_t.c.execution_id == rows.c.execution_id,
        execution_t.c.attempt == rows.c.attempt,
        execution_t.c.status == Status.RUNNING.value,
        execution_t.c.worker_id == worker_id,
    )


def _claim_of(row: Any) -> Claim:
    started: datetime = row.started_ts
    return Claim(
        execution_id=row.execution_id,
        schedule_id=row.schedule_id,
        host_id=row.host_id,
        aggregate_version=row.aggregate_version,
        fire_ts=row.fire_ts,
        attempt=row.attempt,
        failed_attempts=row.failed_attempts,
        args=row.args,
        queue=row.queue,
        priority=Priority(row.priority),
        triggered_by=TriggeredBy(row.triggered_by),
        ready_ts=row.ready_ts,
        started_ts=started,
    )
