"""Executions that an HTTP agent finishes asynchronously: the running attempt, its progress, its secrets."""

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.executions import execution_t, sent_secret_t
from foliot.model.attempt import Claim
from foliot.model.errors import NotFoundError
from foliot.model.execution import OPEN, Status
from foliot.worker.work_sql import claim_of


class RunningAttempt(NamedTuple):
    """The current state of an attempt. `worker_id`: the worker that started it, also if an agent runs it."""

    claim: Claim
    worker_id: str
    status: Status
    sealed: str | None = None
    """The encrypted secrets that were sent with it; None: none were stored."""
    sealed_key: str = ""
    """The key that decrypts them; empty: the token has no key."""


class Agents(Statements):
    async def attempt(self, execution_id: UUID) -> RunningAttempt:
        """Return the latest attempt of an execution. Raises NotFoundError, also if it has never started."""
        sent = sent_secret_t
        statement = (
            select(execution_t, sent.c.sealed)
            .outerjoin(
                sent,
                and_(
                    sent.c.execution_id == execution_t.c.execution_id, sent.c.attempt == execution_t.c.attempt
                ),
            )
            .where(execution_t.c.execution_id == execution_id, execution_t.c.started_ts.is_not(None))
        )
        row = (await self._database.fetch(Pool.API, statement)).one_or_none()
        if row is None:
            raise NotFoundError("execution", execution_id)
        return RunningAttempt(claim_of(row), row.worker_id, Status(row.status), row.sealed)

    @transaction(Pool.API)
    async def progress(self, connection: AsyncConnection, claim: Claim, progress: dict[str, Any]) -> bool:
        """Store the progress of an attempt; return False if this attempt is no longer running."""
        result = await connection.execute(
            update(execution_t)
            .where(
                execution_t.c.execution_id == claim.execution_id,
                execution_t.c.attempt == claim.attempt,
                execution_t.c.status == Status.RUNNING.value,
            )
            .values(progress=progress)
        )
        return bool(result.rowcount)

    async def keep_sent(self, execution_id: UUID, attempt: int, sealed: str) -> None:
        """Store the encrypted secrets that an attempt sends; they replace those of an earlier attempt."""
        values = {"attempt": attempt, "sealed": sealed}
        statement = self._database.dialect.insert(sent_secret_t).values(execution_id=execution_id, **values)
        upsert = statement.on_conflict_do_update(index_elements=[sent_secret_t.c.execution_id], set_=values)

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(upsert)

        await self._database.write(Pool.WORK, work, is_single=True)

    @transaction(Pool.API)
    async def prune_sent(self, connection: AsyncConnection, *, limit: int = 1000) -> int:
        """Delete stored secrets of executions that have ended, at most `limit`; return how many."""
        sent = sent_secret_t
        is_over = or_(
            execution_t.c.execution_id.is_(None),
            execution_t.c.status.not_in([status.value for status in OPEN]),
        )
        over = (
            select(sent.c.execution_id)
            .outerjoin(execution_t, execution_t.c.execution_id == sent.c.execution_id)
            .where(is_over)
            .limit(limit)
        )
        return (await connection.execute(delete(sent).where(sent.c.execution_id.in_(over)))).rowcount
