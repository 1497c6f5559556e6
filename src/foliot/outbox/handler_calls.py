"""Calls an event handler, inside the database transaction in which the consumer's offset moves.

Each transaction of events is handled inside a savepoint. If the handler raises, the work is rolled back to
the savepoint and retried in place, so that the order holds. After `max_attempts` failures its events are
handled one by one, each with its own attempts. Only those that fail alone become dead letters, in the same
database transaction, and the consumer continues. So an event that can't be handled blocks nothing, and a
crash leaves all of this or nothing.

A failure is the handler's if the database transaction can continue after the rollback to the savepoint. If it
can't, the whole batch is rolled back and retried without limit: a database that is away makes no dead
letters. Only a break that the handler itself caused (its timeout during a statement, or repeated deadlocks)
counts as a *strike*, in memory. A transaction with as many strikes as attempts is not retried as a whole. A
handler that kills its process is counted in the database (`claims_sql.py`).
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import NamedTuple, Self
from uuid import UUID

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.model.delivery_events import EventsDeadLettered
from foliot.model.errors import FoliotError
from foliot.model.event import Observer
from foliot.outbox.dead_letters_sql import add_dead_letter
from foliot.outbox.handlers import ConsumerSpec, Event, EventTransaction
from foliot.timing.clock import Clock

RETRY_PAUSE_S = 0.05
LONGEST_RETRY_PAUSE_S = 1.0
SHARE_OF_TIMEOUT = 0.5
"""A batch that has taken this fraction of the handler's timeout is cut short and committed."""
SPARE_IDLE_S = 5.0
"""Seconds that a transaction may be idle beyond the handler's timeout before the database ends it."""


class PendingTransaction(NamedTuple):
    """Events of one transaction, waiting for the handler."""

    transaction_id: UUID
    events: tuple[Event, ...]
    ends: tuple[int, ...]
    """The next offset after each of its events."""
    failure: "HandlerFailure | None" = None
    """Why it can't be handled at all. None: it can be tried."""
    attempts: int = 0
    """How often it was tried, if `failure` is set."""

    @property
    def end(self) -> int:
        """The next offset after all its events."""
        return self.ends[-1]

    def apart(self) -> "Iterator[PendingTransaction]":
        """Yield each event as a transaction of its own."""
        for event, end in zip(self.events, self.ends, strict=True):
            yield PendingTransaction(self.transaction_id, (event,), (end,))


class HandlerFailure(NamedTuple):
    """Error and traceback of a failed handler call."""

    error: str
    traceback: str | None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        name = type(error).__name__
        try:
            return cls(f"{name}: {error}", "".join(format_exception(error)))
        except Exception:  # str() of users' errors may raise too
            return cls(name, None)


MAX_APART = 10_000
"""Maximum number of transactions remembered as to be handled event by event."""


_FAILED_BEFORE = HandlerFailure("it failed as a whole", None)


class Delivered(NamedTuple):
    """The outcome of delivering a batch."""

    end: int | None
    """The next offset if only a part was handled. None: all was handled."""
    handled: int
    dead: int
    """`handled`: number of events handled. `dead`: number of events that became dead letters."""


class HandlerDeadlineError(FoliotError):
    """The handler exceeded its timeout."""


class HandlerCancelledError(FoliotError):
    """Something that the handler awaited was cancelled, but the handler itself was not."""


class NotYoursToEndError(FoliotError):
    """The handler tried to end the transaction in which its offset moves."""


class BatchBrokenError(FoliotError):
    """The database transaction of a batch can't continue. The batch is rolled back and retried."""

    def __init__(self, group: str, transaction_id: UUID, cause: BaseException) -> None:
        super().__init__(
            f"group {group}: the transaction broke while {transaction_id} was handled: "
            f"{type(cause).__name__}: {cause}"
        )


@dataclass(slots=True)
class BatchFailures:
    """How often each transaction has broken its batch through the handler's own fault."""

    counts: dict[UUID, int] = field(default_factory=dict)
    failures: dict[UUID, HandlerFailure] = field(default_factory=dict)
    suspect: UUID | None = None
    """The transaction or event that is being handled, or was when the batch broke."""

    def count(self, transaction_id: UUID, failure: HandlerFailure) -> None:
        self.counts[transaction_id] = self.counts.get(transaction_id, 0) + 1
        self.failures[transaction_id] = failure

    def forget(self, transaction_ids: Sequence[UUID]) -> None:
        for each in transaction_ids:
            self.counts.pop(each, None)
            self.failures.pop(each, None)


class HandlerCaller:
    """Calls one handler with retries, and writes dead letters."""

    def __init__(self, spec: ConsumerSpec, dialect: Dialect, clock: Clock, observer: Observer) -> None:
        self._spec = spec
        self._dialect = dialect
        self._clock = clock
        self._observer = observer
        self.strikes = BatchFailures()
        self._apart: set[UUID] = set()
        """Transactions that failed as a whole and are being handled event by event."""

    @property
    def idle_s(self) -> float:
        return self._spec.timeout_s + SPARE_IDLE_S

    async def deliver(
        self, connection: AsyncConnection, partition: int, waiting: Sequence[PendingTransaction]
    ) -> Delivered:
        """Handle these in order. Stops early if they take too long for one database transaction."""
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
        """Drop the strikes of these transactions: they are committed."""
        self.strikes.forget([each.transaction_id for each in waiting])
        self.strikes.forget([event.id for each in waiting for event in each.events])

    def _remember_apart(self, transaction_id: UUID) -> None:
        if len(self._apart) >= MAX_APART:
            self._apart.clear()
        self._apart.add(transaction_id)

    def note_broken(self, error: BaseException) -> None:
        """Count a strike if a deadlock or the like broke the batch: if it repeats, it is the handler's
        fault."""
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
        # Count whole transactions and single events separately: one event may be what breaks the whole.
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
        """Call the handler once, inside a savepoint; return its failure. Raises if the batch must be
        retried."""
        await connection.exec_driver_sql("SAVEPOINT foliot_event")
        try:
            await self._call(transaction)
            # Fails if the handler swallowed a database error. Its later work would be lost otherwise.
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
            # Passed on, it would end the consumer and not only this call.
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
    """A connection for a handler, which may not commit, roll back or close it.

    If the handler committed, its work would be separated from the offset and could be done again.
    """

    async def commit(self) -> None:
        raise NotYoursToEndError("the transaction is committed when the handler has returned, not by it")

    async def rollback(self) -> None:
        raise NotYoursToEndError("raise an error, and what the handler did is rolled back")

    async def close(self) -> None:
        raise NotYoursToEndError("the connection is given back when the handler has returned")


def held(connection: AsyncConnection) -> AsyncConnection:
    return _HeldConnection(connection.engine, connection.sync_connection)
