"""Lists, replays and drops the dead letters of a group."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import NotFoundError
from foliot.model.event import Observers
from foliot.outbox.consumers_sql import Consumers
from foliot.outbox.dead_letters_sql import (
    DeadLetter,
    DeadLetterRows,
    lock_dead_letter,
    note_failed_again,
    note_replayed,
)
from foliot.outbox.handler_calls import HandlerCaller, held
from foliot.outbox.handlers import ConsumerSpec, Event, EventTransaction
from foliot.timing.clock import Clock

PAGE = 100


class DeadLetters:
    """The dead letters of a group. Each is replayed in its own transaction: it is marked as replayed, or
    stays with the new error."""

    def __init__(self, spec: ConsumerSpec, rows: DeadLetterRows, consumers: Consumers, clock: Clock) -> None:
        self._spec = spec
        self._rows = rows
        self._consumers = consumers
        self._delivering = HandlerCaller(spec, consumers.dialect, clock, Observers())

    async def all(self, *, includes_replayed: bool = False, limit: int = PAGE) -> list[DeadLetter]:
        """Return dead letters in the order of their offsets."""
        return await self._rows.of_group(self._spec.group, includes_replayed=includes_replayed, limit=limit)

    async def replay(self, dead_letter_id: UUID) -> bool:
        """Handle a dead letter again now; return whether it succeeded. Raises NotFoundError.

        A dead letter that was replayed before, or that another process replays right now, is not found.
        """

        async def work(connection: AsyncConnection) -> bool:
            letter = await lock_dead_letter(connection, self._spec.group, dead_letter_id)
            if letter is None:
                raise NotFoundError("dead letter", dead_letter_id)
            events = tuple(Event.of_document(each) for each in letter.events)
            attempt = letter.attempts + 1
            failure = await self._delivering.attempt(
                connection, EventTransaction(letter.transaction_id, events, held(connection), attempt)
            )
            if failure is None:
                await note_replayed(connection, self._consumers.dialect, letter)
                return True
            await note_failed_again(
                connection, letter, error=failure.error, traceback=failure.traceback, attempts=attempt
            )
            return False

        return await self._consumers.transact(work, idle_s=self._delivering.idle_s)

    async def replay_all(self) -> tuple[int, int]:
        """Replay all dead letters in the order of their offsets; return how many succeeded and how many
        failed."""
        went_well = failed = 0
        after: DeadLetter | None = None
        while page := await self._rows.of_group(self._spec.group, after=after, limit=PAGE):
            for letter in page:
                after = letter
                try:
                    is_well = await self.replay(letter.dead_letter_id)
                except NotFoundError:
                    continue  # another process replays or has replayed it
                went_well, failed = (went_well + 1, failed) if is_well else (went_well, failed + 1)
        return went_well, failed

    async def drop(self, dead_letter_id: UUID) -> None:
        """Delete a dead letter for good. Raises NotFoundError."""
        if not await self._rows.drop(self._spec.group, dead_letter_id):
            raise NotFoundError("dead letter", dead_letter_id)
