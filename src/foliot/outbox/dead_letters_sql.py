"""Statements on `dead_letter_queue`: outbox transactions that a consumer group could not handle."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Uuid, delete, insert, literal, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect, Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.events import dead_letter_queue
from foliot.db.types import storable
from foliot.model.ids import new_id

LONGEST_ERROR = 4_000
LONGEST_TRACEBACK = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An outbox transaction that failed the maximum number of times, with all that a replay needs."""

    dead_letter_id: UUID
    group_id: str
    partition_id: int
    host_id: UUID
    """The host of its first event."""
    transaction_id: UUID
    c_offset: int
    """The offset of its first event."""
    events: list[dict[str, Any]]
    error: str
    traceback: str | None
    attempts: int
    created_ts: datetime
    replayed_ts: datetime | None
    replay_requested_ts: datetime | None = None
    """When a replay by a process of its group was requested; None: none is waiting."""


class DeadLetterRows(Statements):
    async def of_group(
        self,
        group: str,
        *,
        includes_replayed: bool = False,
        after: DeadLetter | None = None,
        limit: int = 100,
    ) -> list[DeadLetter]:
        """Return a group's dead letters, oldest offset first; replayed ones only with `includes_replayed`."""
        table = dead_letter_queue
        statement = (
            select(table)
            .where(table.c.group_id == group)
            .order_by(table.c.c_offset, table.c.dead_letter_id)
            .limit(limit)
        )
        if not includes_replayed:
            statement = statement.where(table.c.replayed_ts.is_(None))
        if after is not None:
            place = tuple_(table.c.c_offset, table.c.dead_letter_id)
            last = tuple_(literal(after.c_offset, BigInteger), literal(after.dead_letter_id, Uuid))
            statement = statement.where(place > last)
        return [DeadLetter(**row._mapping) for row in await self._database.fetch(Pool.CONSUMER, statement)]

    async def request_replay(self, connection: AsyncConnection, dead_letter_id: UUID) -> None:
        """Request that a process of its group replays a dead letter."""
        table = dead_letter_queue
        await connection.execute(
            update(table)
            .where(table.c.dead_letter_id == dead_letter_id, table.c.replayed_ts.is_(None))
            .values(replay_requested_ts=self._dialect.now())
        )

    async def get(self, group: str, dead_letter_id: UUID) -> DeadLetter | None:
        statement = select(dead_letter_queue).where(*_is(group, dead_letter_id))
        row = (await self._database.fetch(Pool.CONSUMER, statement)).one_or_none()
        return None if row is None else DeadLetter(**row._mapping)

    @transaction(Pool.CONSUMER)
    async def note_outcome(
        self, connection: AsyncConnection, letter: DeadLetter, *, error: str | None
    ) -> None:
        """Record the result of a replay that ran outside a transaction. `error` None: it succeeded."""
        if error is None:
            await note_replayed(connection, self._database.dialect, letter)
        else:
            await note_failed_again(
                connection, letter, error=error, traceback=None, attempts=letter.attempts + 1
            )

    async def take_requested(self, group: str, *, limit: int) -> list[UUID]:
        """Take the requested replays of a group, oldest offset first.

        A request is removed before its replay starts, so a handler that kills its process is not run again.
        """
        table = dead_letter_queue
        wanted = (
            select(table.c.dead_letter_id)
            .where(table.c.group_id == group, table.c.replay_requested_ts.is_not(None))
            .order_by(table.c.c_offset, table.c.dead_letter_id)
            .limit(limit)
        )
        async with self._database.read(Pool.CONSUMER) as connection:
            if not (await connection.execute(wanted.limit(1))).first():
                return []

        async def work(connection: AsyncConnection) -> list[UUID]:
            found = list((await connection.execute(wanted.with_for_update(skip_locked=True))).scalars())
            await connection.execute(
                update(table).where(table.c.dead_letter_id.in_(found)).values(replay_requested_ts=None)
            )
            return found

        return await self._database.write(Pool.CONSUMER, work)

    @transaction(Pool.CONSUMER)
    async def drop(self, connection: AsyncConnection, group: str, dead_letter_id: UUID) -> bool:
        """Delete a dead letter; return whether it existed."""
        gone = await connection.execute(delete(dead_letter_queue).where(*_is(group, dead_letter_id)))
        return gone.rowcount > 0


async def add_dead_letter(
    connection: AsyncConnection,
    dialect: Dialect,
    *,
    group: str,
    partition_id: int,
    transaction_id: UUID,
    events: Sequence[dict[str, Any]],
    error: str,
    traceback: str | None,
    attempts: int,
) -> None:
    await connection.execute(
        insert(dead_letter_queue).values(
            dead_letter_id=new_id(),
            group_id=group,
            partition_id=partition_id,
            host_id=UUID(events[0]["host_id"]),
            transaction_id=transaction_id,
            c_offset=events[0]["offset"],
            events=list(events),
            error=_shortened(error, LONGEST_ERROR),
            traceback=traceback and _shortened(traceback, LONGEST_TRACEBACK),
            attempts=attempts,
            created_ts=dialect.now(),
        )
    )


async def lock_dead_letter(
    connection: AsyncConnection, group: str, dead_letter_id: UUID
) -> DeadLetter | None:
    """Lock a dead letter; return None if it was replayed, or another process is replaying it now."""
    table = dead_letter_queue
    statement = (
        select(table)
        .where(*_is(group, dead_letter_id), table.c.replayed_ts.is_(None))
        .with_for_update(skip_locked=True)
    )
    row = (await connection.execute(statement)).one_or_none()
    return None if row is None else DeadLetter(**row._mapping)


async def note_replayed(connection: AsyncConnection, dialect: Dialect, letter: DeadLetter) -> None:
    await _note(connection, letter, replayed_ts=dialect.now())


async def note_failed_again(
    connection: AsyncConnection, letter: DeadLetter, *, error: str, traceback: str | None, attempts: int
) -> None:
    await _note(
        connection,
        letter,
        error=_shortened(error, LONGEST_ERROR),
        traceback=traceback and _shortened(traceback, LONGEST_TRACEBACK),
        attempts=attempts,
    )


async def _note(connection: AsyncConnection, letter: DeadLetter, **values: Any) -> None:
    mine = dead_letter_queue.c.dead_letter_id == letter.dead_letter_id
    await connection.execute(update(dead_letter_queue).where(mine).values(**values))


def _is(group: str, dead_letter_id: UUID) -> tuple[Any, Any]:
    table = dead_letter_queue
    return table.c.group_id == group, table.c.dead_letter_id == dead_letter_id


def _shortened(text: str, limit: int) -> str:
    """Keep the end of a long text: the last line of a traceback says what went wrong."""
    text = storable(text)
    return text if len(text) <= limit else "…" + text[-limit:]
