"""Statements on single executions: cancel, retry, and read them with their attempts and logs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import null, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.cancellation import cancel_locked
from foliot.db.rows.execution_inserts import know_queue, lock_schedule, make_room
from foliot.db.rows.execution_rows import attempt_of, line_of, read_execution
from foliot.db.rows.row_locks import lock_executions
from foliot.db.statements import Statements, transaction
from foliot.db.tables.executions import attempt_t, execution_log_t, execution_t
from foliot.db.types import storable
from foliot.model.errors import IllegalTransitionError, NotFoundError
from foliot.model.event import CancelledExecution
from foliot.model.execution import (
    AttemptRecord,
    Execution,
    LoggedLine,
    Status,
    can_be_retried,
    can_become,
)
from foliot.model.policy import priority_from
from foliot.planning.change import Author
from foliot.queries.execution_list import ExecutionList
from foliot.queries.execution_search import ExecutionFilter

REASON_LENGTH = 64


class ChangedExecution(NamedTuple):
    execution: Execution
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that ended at once: this execution, or those it replaced."""


class Executions(Statements):
    """Commands and queries on single executions. With a `host_id`, those of other hosts are not found."""

    # --- commands ---------------------------------------------------------------------------------

    @transaction(Pool.API)
    async def cancel(
        self, connection: AsyncConnection, execution_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> ChangedExecution:
        """Cancel an execution. If it waits or is with an agent, it ends at once.

        A running one is asked to stop, and stays `running` until it has. Raises IllegalTransitionError if the
        execution has ended, NotFoundError.
        """
        text = _reason_text("cancelled", author.name, author.reason)
        row = await self._locked(connection, execution_id, host_id)
        status = Status(row.status)
        if not can_become(status, Status.CANCELLED):
            raise IllegalTransitionError(execution_id, status, Status.CANCELLED)
        cancelled = await cancel_locked(
            connection, self._dialect, [row], reason=text[:REASON_LENGTH], error=text
        )
        await self._audit(connection, author, Action.EXECUTION_CANCELLED, row)
        return ChangedExecution(await read_execution(connection, execution_id), cancelled)

    @transaction(Pool.API)
    async def retry(
        self, connection: AsyncConnection, execution_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> ChangedExecution:
        """Run an unsuccessful execution again: the same execution, with a new retry budget.

        Held, never skipped, if overlap forbids it. Raises IllegalTransitionError, NotFoundError (also if its
        schedule is deleted).
        """
        known = await read_execution(connection, execution_id, host_id=host_id)
        # Lock the schedule's row first, as every inserter does; then the execution itself.
        schedule = await lock_schedule(connection, known.schedule_id)
        row = await self._locked(connection, execution_id, host_id)
        status = Status(row.status)
        if not can_be_retried(status):
            raise IllegalTransitionError(execution_id, status, Status.PENDING)
        await know_queue(connection, self._dialect, row.host_id, row.queue)
        is_ready, now, replaced = await make_room(connection, self._dialect, schedule)
        await connection.execute(
            update(execution_t)
            .where(execution_t.c.execution_id == execution_id)
            .values(
                status=Status.PENDING.value,
                reason=_reason_text("retried", author.name, None)[:REASON_LENGTH],
                failed_attempts=0,
                cancel_requested=False,
                is_remote=False,
                ready_ts=now if is_ready else null(),
                due_by_ts=now + timedelta(seconds=priority_from(row.priority).sla_s) if is_ready else null(),
                **{name: null() for name in _OF_THE_LAST_TRY},
            )
        )
        await self._audit(connection, author, Action.EXECUTION_RETRIED, row)
        return ChangedExecution(await read_execution(connection, execution_id), replaced)

    async def _audit(self, connection: AsyncConnection, author: Author, action: Action, row: Any) -> None:
        await record_audit(
            connection,
            self._dialect,
            author,
            action,
            row.execution_id,
            host_id=row.host_id,
            before={"status": row.status},
            after={"schedule_id": str(row.schedule_id)},
        )

    async def _locked(self, connection: AsyncConnection, execution_id: UUID, host_id: UUID | None) -> Any:
        rows = await lock_executions(connection, self._dialect, execution_t.c.execution_id == execution_id)
        if not rows or (host_id is not None and rows[0].host_id != host_id):
            raise NotFoundError("execution", execution_id)
        return rows[0]

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, execution_id: UUID, *, host_id: UUID | None = None) -> Execution:
        async with self._database.read(Pool.API) as connection:
            return await read_execution(connection, execution_id, host_id=host_id)

    async def page(
        self, wanted: ExecutionFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Execution]:
        """Return a page, latest first. `after` is the last execution of the previous page."""
        return await ExecutionList(self._database).latest(wanted, after=after, limit=limit)

    async def for_schedule(
        self,
        schedule_id: UUID,
        *,
        wanted: ExecutionFilter | None = None,
        after: UUID | None = None,
        limit: int = 50,
    ) -> list[Execution]:
        """Return a page of one schedule's executions, latest first. `after`: last of the previous page."""
        narrowed = replace(wanted or ExecutionFilter(), schedule_ids=(schedule_id,))
        return await self.page(narrowed, after=after, limit=limit)

    async def attempts(self, execution_id: UUID, *, host_id: UUID | None = None) -> list[AttemptRecord]:
        """Return all attempts, including the running one. A claim that was handed back is not an attempt."""
        async with self._database.read(Pool.API) as connection:
            execution = await read_execution(connection, execution_id, host_id=host_id)
            statement = (
                select(attempt_t)
                .where(attempt_t.c.execution_id == execution_id)
                .order_by(attempt_t.c.attempt)
            )
            failed = [attempt_of(row) for row in await connection.execute(statement)]
        return [*failed, *_current(execution)]

    async def logs(
        self,
        execution_id: UUID,
        *,
        after: tuple[int, int] | None = None,
        limit: int = 500,
        host_id: UUID | None = None,
    ) -> list[LoggedLine]:
        """Return the lines that the code logged, in order. `after`: the last (attempt, line) already read."""
        table = execution_log_t
        statement = (
            select(table)
            .where(table.c.execution_id == execution_id)
            .order_by(table.c.attempt, table.c.line)
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(tuple_(table.c.attempt, table.c.line) > tuple_(*after))
        async with self._database.read(Pool.API) as connection:
            await read_execution(connection, execution_id, host_id=host_id)
            return [line_of(row) for row in await connection.execute(statement)]


_OF_THE_LAST_TRY = (
    "lease_until",
    "worker_id",
    "started_ts",
    "ended_ts",
    "duration_seconds",
    "progress",
    "result",
    "error",
    "traceback",
    "external_id",
)


def _reason_text(what: str, by: str | None, reason: str | None) -> str:
    text = f"{what} by {by}" if by else what
    return storable(f"{text}: {reason}" if reason else text)


def _current(execution: Execution) -> list[AttemptRecord]:
    """Return the attempt that is running or has succeeded: `attempt_t` holds only the others."""
    if execution.status not in (Status.RUNNING, Status.SUCCESS):
        return []
    return [
        AttemptRecord(
            attempt=execution.attempt,
            status=execution.status,
            worker_id=execution.worker_id,
            started_ts=execution.started_ts,
            ended_ts=execution.ended_ts,
            duration_seconds=execution.duration_seconds if execution.ended_ts else None,
        )
    ]
