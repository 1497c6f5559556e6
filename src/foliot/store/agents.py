"""Executions that an agent finishes by itself: what runs, and how far it says it is."""

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import NotFoundError
from foliot.model.execution import Status
from foliot.store.database import Database
from foliot.store.dialect import Pool
from foliot.store.protocol import Claim
from foliot.store.schema import execution_t
from foliot.store.work import claim_of


class RunningAttempt(NamedTuple):
    """An attempt as it stands; the worker that began it is named, whoever goes on with it."""

    claim: Claim
    worker_id: str
    status: Status


class Agents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def attempt(self, execution_id: UUID) -> RunningAttempt:
        """The latest attempt of an execution. Raises NotFoundError, also for one that was never begun."""
        statement = select(execution_t).where(
            execution_t.c.execution_id == execution_id, execution_t.c.started_ts.is_not(None)
        )
        async with self._database.read(Pool.API) as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFoundError("execution", execution_id)
        return RunningAttempt(claim_of(row), row.worker_id, Status(row.status))

    async def progress(self, claim: Claim, progress: dict[str, Any]) -> bool:
        """Note how far it is; False: that attempt does not run any more."""

        async def work(connection: AsyncConnection) -> bool:
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

        return await self._database.write(Pool.API, work)
