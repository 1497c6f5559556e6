"""Progress, external id and log lines of running executions. Readable while they run.

A worker writes them in batches, for all its executions in one transaction. Writing progress requires the
attempt, like every write of a worker. Log lines carry the attempt, so that lines of a worker that was
suspended past its lease can be distinguished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Integer, String, Text, Uuid, literal, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Columns, Pool
from foliot.db.statements import Statements
from foliot.db.tables.executions import execution_log_t, execution_t
from foliot.db.types import Instant
from foliot.model.execution import Status


@dataclass(frozen=True, slots=True)
class Note:
    """Progress and log lines of a running execution since the last note."""

    execution_id: UUID
    attempt: int
    progress: str | None = None
    """JSON text."""
    lines: Sequence[tuple[int, Sequence[Any]]] = ()
    """(number, (time, level, logger, message)) of each line."""
    external_id: str | None = None
    """Id of the work in the system that runs it, for example a Celery task id."""


class Notes(Statements):
    async def write(self, worker_id: str, notes: Sequence[Note]) -> None:
        """Store these notes. Existing lines stay unchanged, so a repetition is harmless."""
        progress = [
            (note.execution_id, note.attempt, note.progress) for note in notes if note.progress is not None
        ]
        external_ids = [
            (note.execution_id, note.attempt, note.external_id)
            for note in notes
            if note.external_id is not None
        ]
        lines = [
            (note.execution_id, note.attempt, number, *line) for note in notes for number, line in note.lines
        ]

        async def work(connection: AsyncConnection) -> None:
            if progress:
                await self._write_column(connection, worker_id, "progress", progress)
            if external_ids:
                await self._write_column(connection, worker_id, "external_id", external_ids)
            if lines:
                await self._write_lines(connection, lines)

        if progress or external_ids or lines:
            await self._database.write(Pool.WORK, work)

    async def _write_column(
        self,
        connection: AsyncConnection,
        worker_id: str,
        column: Literal["progress", "external_id"],
        rows: Sequence[tuple[UUID, int, str]],
    ) -> None:
        columns: Columns = {"execution_id": Uuid(), "attempt": Integer(), column: Text()}
        reported = self._dialect.rows("reported", columns, rows)
        value = self._dialect.json(reported.c.progress) if column == "progress" else reported.c.external_id
        await connection.execute(
            update(execution_t)
            .where(
                execution_t.c.execution_id == reported.c.execution_id,
                execution_t.c.attempt == reported.c.attempt,
                execution_t.c.status == Status.RUNNING.value,
                execution_t.c.worker_id == literal(worker_id),
            )
            .values({column: value})
        )

    async def _write_lines(self, connection: AsyncConnection, rows: Sequence[tuple[Any, ...]]) -> None:
        columns: Columns = {
            "execution_id": Uuid(),
            "attempt": Integer(),
            "line": Integer(),
            "logged_ts": Instant(),
            "level": String(),
            "logger": String(),
            "message": Text(),
        }
        new = self._dialect.rows("new", columns, rows)
        await connection.execute(
            self._dialect.insert(execution_log_t)
            .from_select(list(columns), select(*new.c).where(true()))
            .on_conflict_do_nothing()
        )
