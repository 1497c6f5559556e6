"""Statements of workers: claim, renew, settle. Each takes a fixed number of statements for any batch size.

`attempt` is the fence: it grows with every claim, and renewing or settling requires it. So if a worker was
suspended past its lease and another took over, only the other can settle.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    FromClause,
    Integer,
    Select,
    String,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    null,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from foliot.access.audit import Action, record_audit
from foliot.db.columns import BatchColumns, Shape
from foliot.db.dialect import Columns, Dialect, Pool
from foliot.db.rows.attempt_rows import EndedAttempt, record_attempts
from foliot.db.rows.cancellation import cancel_locked
from foliot.db.rows.delay_rows import set_next_after_end
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.db.rows.row_locks import lock_schedules, schedule_name
from foliot.db.rows.version_rows import read_specs
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import task_function_t
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.model.attempt import Claim, HandoverResult, Renewal, Settled, Settlement
from foliot.model.errors import IllegalTransitionError
from foliot.model.execution import FINAL, Status, TriggeredBy, can_become
from foliot.model.policy import priority_from
from foliot.model.schedule import ScheduleSpec
from foliot.planning.change import Author
from foliot.worker.claim_scope import ClaimScope


class Work(Statements):
    async def queues(self, names: Sequence[str] | None) -> list[tuple[UUID, str]]:
        """Return (host_id, queue) of the queues that are not paused. `names` None: all queues."""
        statement = select(queue_t.c.host_id, queue_t.c.queue).where(~queue_t.c.paused)
        if names is not None:
            statement = statement.where(queue_t.c.queue.in_(names))
        return [(row.host_id, row.queue) for row in await self._database.fetch(Pool.WORK, statement)]

    @transaction(Pool.API)
    async def pause_queue(
        self, connection: AsyncConnection, host_id: UUID, queue: str, author: Author, *, is_paused: bool
    ) -> None:
        """Pause or resume a queue. `queues` leaves out paused ones. The queue need not exist yet."""
        statement = self._dialect.insert(queue_t).values(host_id=host_id, queue=queue, paused=is_paused)
        statement = statement.on_conflict_do_update(
            index_elements=[queue_t.c.host_id, queue_t.c.queue], set_={"paused": is_paused}
        )
        await connection.execute(statement)
        action = Action.QUEUE_PAUSED if is_paused else Action.QUEUE_RESUMED
        await record_audit(connection, self._dialect, author, action, queue, host_id=host_id)

    async def claim(
        self,
        worker_id: str,
        queues: Sequence[tuple[UUID, str]],
        *,
        limit: int,
        lease_s: float,
        scope: ClaimScope | None = None,
        excluding: Sequence[tuple[UUID, int]] = (),
    ) -> list[Claim]:
        """Claim up to `limit` executions, most urgent first. Each goes to one worker only.

        `scope` None: all priorities. Executions of the schedule versions in `excluding` are left to other
        workers.
        """
        if not queues or limit < 1:
            return []
        statement = _claim(self._dialect, tuple(queues), scope, bool(excluding))
        arguments = {"most": limit, "claimed_by": worker_id, "lease_s": lease_s}
        return await self._take(statement, arguments | self._excluded(excluding))

    async def claim_some(
        self,
        worker_id: str,
        queues: Sequence[tuple[UUID, str]],
        execution_ids: Sequence[UUID],
        *,
        lease_s: float,
        excluding: Sequence[tuple[UUID, int]] = (),
    ) -> list[Claim]:
        """Claim those of these executions that are ready, in one of these queues, and not locked by another.

        Executions of the schedule versions in `excluding` are left to other workers.
        """
        if not queues or not execution_ids:
            return []
        arguments = self._dialect.arguments("given", _GIVEN, [list(execution_ids)])
        arguments |= {"claimed_by": worker_id, "lease_s": lease_s}
        statement = _claim_some(self._dialect, tuple(queues), bool(excluding))
        return await self._take(statement, arguments | self._excluded(excluding))

    def _excluded(self, versions: Sequence[tuple[UUID, int]]) -> dict[str, Any]:
        if not versions:
            return {}
        return self._dialect.arguments(
            "excluded", _VERSIONS, [list(column) for column in zip(*versions, strict=True)]
        )

    async def _take(self, statement: ReturningUpdate[Any], arguments: dict[str, Any]) -> list[Claim]:
        async def work(connection: AsyncConnection) -> list[Claim]:
            result = await connection.execute(statement, arguments)
            rows = sorted(result.all(), key=itemgetter(-1))
            return [
                # In the order of its fields.
                Claim._make((*row[:9], priority_from(row[9]), _TRIGGERED_BY[row[10]], *row[11:14]))
                for row in rows
            ]

        return await self._database.write(Pool.WORK, work, is_single=True)

    async def renew(self, worker_id: str, claims: Sequence[Claim], lease_s: float) -> Renewal:
        """Extend all these leases in one statement."""
        if not claims:
            return Renewal(frozenset(), frozenset())
        arguments = {**_attempts(self._dialect, claims), "mine_by": worker_id, "lease_s": lease_s}

        async def work(connection: AsyncConnection) -> dict[UUID, bool]:
            result = await connection.execute(_renew(self._dialect), arguments)
            return {row.execution_id: row.cancel_requested for row in result}

        kept = await self._database.write(Pool.WORK, work, is_single=True)
        lost = frozenset(claim.execution_id for claim in claims).difference(kept)
        return Renewal(lost, frozenset(key for key, is_cancelled in kept.items() if is_cancelled))

    async def settle(self, worker_id: str, settlements: Sequence[Settlement]) -> Settled:
        """Record how attempts ended. Return the executions that did not end as requested."""
        for each in settlements:
            if not can_become(Status.RUNNING, each.status):
                raise IllegalTransitionError(each.claim.execution_id, Status.RUNNING, each.status)
        if not settlements:
            return Settled()

        async def work(connection: AsyncConnection) -> Settled:
            delayed = {each.claim.schedule_id for each in settlements if each.is_delay}
            if delayed:
                await lock_schedules(connection, self._dialect, sorted(delayed))
            settled = await self._settle(connection, worker_id, settlements)
            done, outcome = settlements, Settled()
            if len(settled) < len(settlements) or any(each.status is not Status.SUCCESS for each in done):
                # Take the status as written: an execution to be retried may have been cancelled meanwhile.
                written = dict(settled)
                done = [
                    each._replace(status=Status(written[each.claim.execution_id]))
                    for each in settlements
                    if each.claim.execution_id in written
                ]
                outcome = _outcome(settlements, written)
            await record_attempts(connection, self._dialect, _failed(done, worker_id))
            await record_status(connection, self._dialect, _runs_of(done))
            ended = {
                each.claim.schedule_id
                for each in done
                if each.is_delay and each.status in FINAL and each.claim.triggered_by is TriggeredBy.SCHEDULER
            }
            if ended:
                await set_next_after_end(connection, self._dialect, sorted(ended))
            return outcome

        return await self._database.write(Pool.WORK, work)

    async def _settle(
        self, connection: AsyncConnection, worker_id: str, settlements: Sequence[Settlement]
    ) -> Sequence[tuple[UUID, str]]:
        batch = _ENDED.lay_out(
            self._dialect,
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
        result = await connection.execute(
            _settle(self._dialect, batch.shape), {**batch.arguments, "mine_by": worker_id}
        )
        rows: Sequence[tuple[UUID, str]] = result.all()
        return rows

    @transaction(Pool.WORK)
    async def accept(
        self,
        connection: AsyncConnection,
        worker_id: str,
        claim: Claim,
        *,
        lease_s: float,
        external_id: str | None,
    ) -> HandoverResult:
        """Hand the execution to an agent, which must report its end within `lease_s` of the start.

        If its cancellation was requested, it is cancelled instead.
        """
        result = await connection.execute(
            update(execution_t)
            .where(
                execution_t.c.execution_id == claim.execution_id,
                execution_t.c.attempt == claim.attempt,
                execution_t.c.status == Status.RUNNING.value,
                execution_t.c.worker_id == worker_id,
            )
            .values(
                is_remote=True,
                external_id=external_id,
                lease_until=self._dialect.plus(execution_t.c.started_ts, lease_s),
            )
            .returning(execution_t, schedule_name(), self._dialect.now().label("store_now"))
        )
        row = result.one_or_none()
        if row is None or not row.cancel_requested:
            return HandoverResult(row is not None)
        # Nobody renews it from now on, so nobody would notice the request to cancel.
        reason = row.reason or "cancelled"
        return HandoverResult(False, await cancel_locked(connection, self._dialect, [row], reason=reason))

    async def inactive_tasks(self) -> frozenset[str]:
        """Return the names of the task functions that an operator has disabled."""
        statement = select(task_function_t.c.name).where(~task_function_t.c.is_active)
        return frozenset((await self._database.fetch(Pool.WORK, statement)).scalars())

    async def specs(self, versions: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], ScheduleSpec]:
        """Return the schedule definitions of these (schedule_id, aggregate_version) pairs."""
        async with self._database.read(Pool.WORK) as connection:
            return await read_specs(connection, self._dialect, versions)


def _outcome(settlements: Sequence[Settlement], written: Mapping[UUID, str]) -> Settled:
    refused = frozenset(each.claim.execution_id for each in settlements).difference(written)
    cancelled = frozenset(
        each.claim.execution_id
        for each in settlements
        if each.status not in FINAL and written.get(each.claim.execution_id) == Status.CANCELLED
    )
    return Settled(refused, cancelled)


def _failed(done: Sequence[Settlement], worker_id: str) -> list[EndedAttempt]:
    """Attempts to record as ended without success. A claim that was handed back (`pending`) is no attempt."""
    return [
        EndedAttempt(
            each.claim.execution_id,
            each.claim.attempt,
            each.attempt_status,
            worker_id,
            each.claim.started_ts,
            each.error,
            each.duration_s,
            each.traceback,
        )
        for each in done
        if each.attempt_status not in (Status.SUCCESS, Status.PENDING)
    ]


def _runs_of(done: Sequence[Settlement]) -> list[LastRun]:
    """The runs to record as last runs. A claim that was handed back (`pending`) did not run."""
    return [
        LastRun(each.claim.schedule_id, each.claim.started_ts, each.status, each.claim.execution_id)
        for each in done
        if each.status is not Status.PENDING
    ]


def is_failure(status: Status) -> bool:
    """Whether an attempt with this status counts against the retry budget."""
    return status in (Status.FAILED, Status.TIMEOUT, Status.UNKNOWN)


_MINE: Columns = {"execution_id": Uuid(), "attempt": Integer()}

_ENDED = BatchColumns(
    "ended",
    {
        **_MINE,
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
    by=("execution_id", "attempt"),
)


_GIVEN: Columns = {"execution_id": Uuid()}
_VERSIONS: Columns = {"schedule_id": Uuid(), "aggregate_version": Integer()}


@lru_cache(maxsize=64)
def _claim(
    dialect: Dialect, queues: tuple[tuple[UUID, str], ...], scope: ClaimScope | None, excludes: bool
) -> ReturningUpdate[Any]:
    limit = bindparam("most", type_=Integer())
    conditions = _in_scope(dialect, scope)
    if excludes:
        conditions += (_is_not_excluded(dialect),)
    return _take(dialect, dialect.claimable(queues, limit, *conditions))


def _is_not_excluded(dialect: Dialect) -> ColumnElement[bool]:
    # A filter keeps the order of the index; an anti-join might read all claimable rows.
    left = dialect.table("excluded", _VERSIONS)
    version = tuple_(execution_t.c.schedule_id, execution_t.c.aggregate_version)
    return version.not_in(select(left.c.schedule_id, left.c.aggregate_version))


def _in_scope(dialect: Dialect, scope: ClaimScope | None) -> tuple[ColumnElement[bool], ...]:
    if scope is None:
        return ()
    ways: list[ColumnElement[bool]] = [execution_t.c.priority.in_([str(each) for each in scope.at_once])]
    if scope.others_after_s is not None:
        ways.append(execution_t.c.ready_ts <= dialect.plus(dialect.now(), -scope.others_after_s))
    return (or_(*ways),)


@lru_cache(maxsize=64)
def _claim_some(
    dialect: Dialect, queues: tuple[tuple[UUID, str], ...], excludes: bool
) -> ReturningUpdate[Any]:
    given = dialect.table("given", _GIVEN)
    wanted = dialect.rows("wanted", {"host_id": Uuid(), "queue": String()}, queues)
    picked = (
        select(execution_t.c.execution_id)
        .join(given, given.c.execution_id == execution_t.c.execution_id)
        .join(
            wanted,
            and_(
                # The guard keeps the planner from looking rows up by queue or host: the id finds them.
                wanted.c.host_id == dialect.guard(execution_t.c.host_id),
                wanted.c.queue == dialect.guard(execution_t.c.queue),
            ),
        )
        .where(
            text(IS_CLAIMABLE),
            execution_t.c.ready_ts <= dialect.now(),
            *((_is_not_excluded(dialect),) if excludes else ()),
        )
        .with_for_update(skip_locked=True, of=execution_t)
    )
    return _take(dialect, picked)


def _take(dialect: Dialect, claimable: Select[Any]) -> ReturningUpdate[Any]:
    """Start an attempt at each of these executions."""
    now = dialect.now()
    # MATERIALIZED: if inlined, the subquery may run more than once and claim more than the limit.
    picked = claimable.cte("picked").prefix_with("MATERIALIZED")
    return (
        update(execution_t)
        .where(execution_t.c.execution_id.in_(select(picked.c.execution_id)))
        .values(
            status=Status.RUNNING.value,
            attempt=execution_t.c.attempt + 1,
            worker_id=bindparam("claimed_by", type_=String()),
            lease_until=dialect.plus(now, bindparam("lease_s", type_=Float())),
            started_ts=now,
            reason=null(),
            is_remote=False,
            # The previous attempt's values are in attempt_t.
            **{name: null() for name in ("progress", "result", "error", "traceback", "external_id")},
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
            execution_t.c.started_ts,
            execution_t.c.trace_context,
            execution_t.c.due_by_ts,
        )
    )


@lru_cache(maxsize=64)
def _renew(dialect: Dialect) -> ReturningUpdate[Any]:
    lease_s = bindparam("lease_s", type_=Float())
    return (
        update(execution_t)
        .where(*_is_mine(dialect.table("mine", _MINE)))
        .values(lease_until=dialect.plus(dialect.now(), lease_s))
        .returning(execution_t.c.execution_id, execution_t.c.cancel_requested)
    )


@lru_cache(maxsize=256)
def _settle(dialect: Dialect, shape: Shape) -> ReturningUpdate[Any]:
    table, ended = _ENDED.table(dialect, shape)
    now = dialect.now()
    again_at = dialect.plus(now, ended["retry_in_s"])
    is_final = ended["is_final"]
    is_over = and_(execution_t.c.cancel_requested, ~is_final)
    return (
        update(execution_t)
        .where(*_is_mine(table, ended["attempt"]))
        .values(
            # A cancelled execution is not retried.
            status=case((is_over, Status.CANCELLED.value), else_=ended["status"]),
            lease_until=null(),
            failed_attempts=execution_t.c.failed_attempts + case((ended["is_failure"], 1), else_=0),
            ended_ts=case((or_(is_final, is_over), now)),
            duration_seconds=ended["duration_s"],
            result=dialect.json(ended["result"]),
            error=ended["error"],
            traceback=ended["traceback"],
            ready_ts=case((is_final, execution_t.c.ready_ts), else_=again_at),
            due_by_ts=case((is_final, execution_t.c.due_by_ts), else_=dialect.plus(again_at, ended["sla_s"])),
        )
        .returning(execution_t.c.execution_id, execution_t.c.status)
    )


def _attempts(dialect: Dialect, claims: Sequence[Claim]) -> dict[str, Any]:
    values: list[list[Any]] = [[each.execution_id for each in claims], [each.attempt for each in claims]]
    return dialect.arguments("mine", _MINE, values)


def _is_mine(table: FromClause, attempt: ColumnElement[Any] | None = None) -> tuple[Any, ...]:
    return (
        execution_t.c.execution_id == table.c.execution_id,
        execution_t.c.attempt == (table.c.attempt if attempt is None else attempt),
        execution_t.c.status == Status.RUNNING.value,
        execution_t.c.worker_id == bindparam("mine_by", type_=String()),
    )


def claim_of(row: Any) -> Claim:
    return Claim(
        row.execution_id,
        row.schedule_id,
        row.host_id,
        row.aggregate_version,
        row.fire_ts,
        row.attempt,
        row.failed_attempts,
        row.args,
        row.queue,
        priority_from(row.priority),
        _TRIGGERED_BY[row.triggered_by],
        row.ready_ts,
        row.started_ts,
        row.trace_context,
    )


# A dictionary, because calling the enum with a text takes ten times as long.
_TRIGGERED_BY = {str(each): each for each in TriggeredBy}
