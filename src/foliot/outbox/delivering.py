"""Transactions of events to their handler, inside the database transaction in which the offset moves.

Each is handled inside a savepoint. One that raises is rolled back to it and tried again in its place, so that
order holds. When it has failed as often as it may, its events are handled one by one, each with attempts of
its own: only those that fail alone become dead letters, in the same transaction, and the next goes on. So one
event that can't be handled stops nothing, and whatever is lost leaves all of this or nothing.

Whose fault it was: if the transaction can go on after the rollback to the savepoint, the handler's. If not,
all of the batch is rolled back and tried again, for as long as it takes: a database that went away makes no
dead letters. Only what the handler itself broke (by its deadline in the midst of a statement, by deadlocks
again and again) is counted as a *strike*, in memory: what has as many strikes as attempts is not tried again
as it is. A handler that takes its process with it is counted in the database (`store.claims`).
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import NamedTuple, Self
from uuid import UUID

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import FoliotError
from foliot.model.event import EventsDeadLettered, Observer
from foliot.outbox.handling import ConsumerSpec, Event, EventTransaction
from foliot.store.dead_letters import add_dead_letter
from foliot.store.dialect import Dialect
from foliot.timing.clock import Clock

RETRY_PAUSE_S = 0.05
LONGEST_RETRY_PAUSE_S = 1.0
SHARE_OF_TIMEOUT = 0.5
"""A batch that has taken this part of a handler's time is cut short, and committed."""
SPARE_IDLE_S = 5.0
"""How much longer than its handler a transaction may rest before the database ends it."""


class PendingTransaction(NamedTuple):
    """A transaction that is to be handled."""

    transaction_id: UUID
    events: tuple[Event, ...]
    ends: tuple[int, ...]
    """Where to go on after each of its events."""
    failure: "HandlerFailure | None" = None
    """Why it can't be handled at all."""
    attempts: int = 0
    """How often it was tried, if it can't be handled."""

    @property
    def end(self) -> int:
        """Where to go on after all of it."""
        return self.ends[-1]

    def apart(self) -> "Iterator[PendingTransaction]":
        """Each of its events, to be handled alone."""
        for event, end in zip(self.events, self.ends, strict=True):
            yield PendingTransaction(self.transaction_id, (event,), (end,))


class HandlerFailure(NamedTuple):
    error: str
    traceback: str | None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        name = type(error).__name__
        try:
            return cls(f"{name}: {error}", "".join(format_exception(error)))
        except Exception:  # users' errors may fail even at being told
            return cls(name, None)


MAX_APART = 10_000
"""Transactions that are remembered as to be handled event by event."""


_FAILED_BEFORE = HandlerFailure("it failed as a whole", None)


class Delivered(NamedTuple):
    """How far it went."""

    end: int | None
    """Where to go on, if not all of it was handled."""
    handled: int
    dead: int
    """Events that were handled, and those that became dead letters."""


class HandlerDeadlineError(FoliotError):
    """The handler took longer than it may."""


class HandlerCancelledError(FoliotError):
    """The handler waited for something that was cancelled, without being cancelled itself."""


class NotYoursToEndError(FoliotError):
    """The handler has tried to commit or roll back the transaction that its offset moves in."""


class BatchBrokenError(FoliotError):
    """The transaction of a batch can't go on; all of it is rolled back and tried again."""

    def __init__(self, group: str, transaction_id: UUID, cause: BaseException) -> None:
        super().__init__(
            f"group {group}: the transaction broke while {transaction_id} was handled: "
            f"{type(cause).__name__}: {cause}"
        )


@dataclass(slots=True)
class Strikes:
    """How often each transaction has broken its batch, by the handler's own doing."""

    counts: dict[UUID, int] = field(default_factory=dict)
    failures: dict[UUID, HandlerFailure] = field(default_factory=dict)
    suspect: UUID | None = None
    """Being handled at this moment, or when a batch broke."""

    def count(self, transaction_id: UUID, failure: HandlerFailure) -> None:
        self.counts[transaction_id] = self.counts.get(transaction_id, 0) + 1
        self.failures[transaction_id] = failure

    def forget(self, transaction_ids: Sequence[UUID]) -> None:
        for each in transaction_ids:
            self.counts.pop(each, None)
            self.failures.pop(each, None)


class Delivering:
    """Calls one handler."""

    def __init__(self, spec: ConsumerSpec, dialect: Dialect, clock: Clock, observer: Observer) -> None:
        self._spec = spec
        self._dialect = dialect
        self._clock = clock
        self._observer = observer
        self.strikes = Strikes()
        self._apart: set[UUID] = set()
        """Transactions that failed as a whole, and are not handled to their end."""

    @property
    def idle_s(self) -> float:
        return self._spec.timeout_s + SPARE_IDLE_S

    async def deliver(
        self, connection: AsyncConnection, partition: int, waiting: Sequence[PendingTransaction]
    ) -> Delivered:
        """Handle these, in order; all of them unless they take too long for one transaction."""
        ends_at = self._clock.monotonic() + self._spec.timeout_s * SHARE_OF_TIMEOUT
        handled = dead = 0
        end: int | None = None
        for each in waiting:
            if end is not None and self._clock.monotonic() > ends_at:
                return Delivered(end, handled, dead)
            failure = await self._handle(connection, each)
            if failure is None:
                handled += len(each.events)
            elif len(each.events) == 1 or each.failure is not None:
                dead += len(each.events)
                await self._bury(connection, partition, each, failure)
            else:
                self._remember_apart(each.transaction_id)
                for alone in each.apart():
                    if end is not None and self._clock.monotonic() > ends_at:
                        return Delivered(end, handled, dead)
                    failure = await self._handle(connection, alone)
                    handled, dead = handled + (failure is None), dead + (failure is not None)
                    if failure is not None:
                        await self._bury(connection, partition, alone, failure)
                    end = alone.end
                self._apart.discard(each.transaction_id)
            end = each.end
        return Delivered(None, handled, dead)

    def forget(self, waiting: Sequence[PendingTransaction]) -> None:
        """These are committed: whatever was counted of them is over."""
        self.strikes.forget([each.transaction_id for each in waiting])
        self.strikes.forget([event.id for each in waiting for event in each.events])

    def _remember_apart(self, transaction_id: UUID) -> None:
        if len(self._apart) >= MAX_APART:
            self._apart.clear()
        self._apart.add(transaction_id)

    def note_broken(self, error: BaseException) -> None:
        """The batch was given up for this; a deadlock that does not end is the handler's own doing."""
        suspect = self.strikes.suspect
        if suspect is not None and isinstance(error, DBAPIError) and self._dialect.is_transient(error):
            self.strikes.count(suspect, HandlerFailure.of(error))

    async def _handle(
        self, connection: AsyncConnection, waiting: PendingTransaction
    ) -> HandlerFailure | None:
        if waiting.failure is not None:
            return waiting.failure
        if len(waiting.events) > 1 and waiting.transaction_id in self._apart:
            return _FAILED_BEFORE
        # Whole and single events are counted apart: what breaks as a whole may do so by one event.
        key = waiting.events[0].id if len(waiting.events) == 1 else waiting.transaction_id
        if self.strikes.counts.get(key, 0) >= self._spec.max_attempts:
            return self.strikes.failures[key]
        failure: HandlerFailure | None = None
        for attempt in range(1, self._spec.max_attempts + 1):
            self.strikes.suspect = key
            failure = await self.attempt(
                connection,
                EventTransaction(waiting.transaction_id, waiting.events, held(connection), attempt),
            )
            self.strikes.suspect = None
            if failure is None:
                return None
            if attempt < self._spec.max_attempts:
                await asyncio.sleep(min(RETRY_PAUSE_S * 2**attempt, LONGEST_RETRY_PAUSE_S))
        return failure

    async def attempt(
        self, connection: AsyncConnection, transaction: EventTransaction
    ) -> HandlerFailure | None:
        """Call the handler once, inside a savepoint. Raises where the whole batch is to be redone."""
        await connection.exec_driver_sql("SAVEPOINT foliot_event")
        try:
            await self._call(transaction)
            # Fails where the handler has caught an error of the database's: what follows it would be lost.
            await connection.exec_driver_sql("RELEASE SAVEPOINT foliot_event")
        except Exception as error:
            if isinstance(error, DBAPIError) and self._dialect.is_transient(error):
                raise
            await self._back_to_savepoint(connection, transaction, error)
            return HandlerFailure.of(error)
        return None

    async def _call(self, transaction: EventTransaction) -> None:
        scope = asyncio.timeout(self._spec.timeout_s)
        try:
            async with scope:
                await self._spec.handler(transaction)
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise HandlerDeadlineError(f"it took longer than {self._spec.timeout_s:g} s") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Let through, it would end the consumer and not only this call.
            raise HandlerCancelledError("what it waited for was cancelled") from error

    async def _back_to_savepoint(
        self, connection: AsyncConnection, transaction: EventTransaction, error: Exception
    ) -> None:
        try:
            await connection.exec_driver_sql("ROLLBACK TO SAVEPOINT foliot_event")
            await connection.exec_driver_sql("RELEASE SAVEPOINT foliot_event")
        except Exception:
            if isinstance(error, HandlerDeadlineError):
                self.strikes.count(
                    self.strikes.suspect or transaction.transaction_id, HandlerFailure.of(error)
                )
            raise BatchBrokenError(self._spec.group, transaction.transaction_id, error) from error

    async def _bury(
        self,
        connection: AsyncConnection,
        partition: int,
        waiting: PendingTransaction,
        failure: HandlerFailure,
    ) -> None:
        await add_dead_letter(
            connection,
            self._dialect,
            group=self._spec.group,
            partition_id=partition,
            transaction_id=waiting.transaction_id,
            events=[each.document() for each in waiting.events],
            error=failure.error,
            traceback=failure.traceback,
            attempts=waiting.attempts if waiting.failure is not None else self._spec.max_attempts,
        )
        self._observer.notify(
            EventsDeadLettered(self._spec.group, waiting.transaction_id, len(waiting.events), failure.error)
        )


class _HeldConnection(AsyncConnection):
    """A connection for a handler, which may not commit or roll back its transaction.

    Committed by it, the work would be torn from its offset, and done again.
    """

    async def commit(self) -> None:
        raise NotYoursToEndError("the transaction is committed when the handler has returned, not by it")

    async def rollback(self) -> None:
        raise NotYoursToEndError("raise an error, and what the handler did is rolled back")

    async def close(self) -> None:
        raise NotYoursToEndError("the connection is given back when the handler has returned")


def held(connection: AsyncConnection) -> AsyncConnection:
    return _HeldConnection(connection.engine, connection.sync_connection)
