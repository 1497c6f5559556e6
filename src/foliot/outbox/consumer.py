"""The database consumer: reads the outbox in the database, and moves its offset with the handler's work.

A step reads the offsets of the group and the log (no locks), and claims the partition that is furthest behind
and that nobody has (`claims_sql.py`). Then, in one transaction, it locks the partition, reads its next events
up to the committed end of the log, handles them (`outbox.delivering`) and moves the offset. Any number of
processes do so in parallel, each with another partition. On SQLite the same statements run, one writer at a
time.

A process that dies leaves its partition unchanged; it is free a few seconds after the claim. A process that
is suspended during a batch keeps it until the database ends its transaction, shortly after the handler's
timeout.

The number of partitions is stored in the group's rows. A consumer that is configured with another number
first lets all partitions reach the same offset with the old number, and then changes it. So the events of a
host are never handled by two consumers at once. After a consumer has seen its own number in force, it never
changes it again. So two versions of an application that run side by side don't change it back and forth.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.hints import Hint, Hints
from foliot.model.delivery_events import ConsumerLagChanged, EventsConsumed
from foliot.model.event import Observer
from foliot.outbox.claims_sql import ConsumerClaim, end_claim
from foliot.outbox.consumer_registration import ConsumerRegistration, give_up_crashed
from foliot.outbox.consumers_sql import (
    Consumers,
    GroupPositions,
    PartitionPosition,
    end_of_stretch,
    move_partition,
    read_messages,
    read_positions,
    take_partition,
)
from foliot.outbox.handler_calls import Delivered, HandlerCaller, PendingTransaction
from foliot.outbox.handlers import ConsumerSpec, Event
from foliot.outbox.partitions import OutboxPosition, first_alone, whole_transactions
from foliot.service import Wake
from foliot.timing.clock import Clock

MIN_SCAN = 1_000
"""Minimum number of offsets that a batch scans for its own messages."""


MAX_TRANSACTION = 1_000
"""Maximum number of events in one transaction of the outbox, as written by firing."""


class _Batch(NamedTuple):
    position: PartitionPosition
    end: int
    delivered: Delivered
    waiting: Sequence[PendingTransaction]


class Consumer:
    """A service that runs one handler as a member of its consumer group."""

    def __init__(
        self,
        spec: ConsumerSpec,
        consumers: Consumers,
        clock: Clock,
        hints: Hints,
        observer: Observer,
        *,
        poll_s: float = 1.0,
    ) -> None:
        self.name = f"consumer {spec.group}"
        self.wake = Wake()
        self._spec = spec
        self._consumers = consumers
        self._clock = clock
        self._observer = observer
        self._poll_s = poll_s
        self._insists = True
        self._reported_lag: int | None = None
        self._presence = ConsumerRegistration(spec, consumers, clock)
        self._reach = max(MIN_SCAN, 2 * spec.batch * spec.partitions) + MAX_TRANSACTION
        self._delivering = HandlerCaller(spec, consumers.dialect, clock, observer)
        hints.listen(Hint.EVENTS, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        """Handle one batch. Returns the pause until the next step: 0 if there may be more."""
        await self._presence.keep()
        standing = await self._consumers.standing(self._spec.group)
        if not standing.positions:
            from_end = self._spec.start == "latest"
            await self._consumers.begin_group(self._spec.group, self._spec.partitions, from_end=from_end)
            return 0
        self._tell_lag(standing.lag)
        until = await self._limit_of(standing)
        if until is None:
            return 0
        if all(each.next_offset >= until for each in standing.positions):
            return self._poll_s
        began = self._clock.monotonic()
        owner = self._presence.owner
        claim = await self._consumers.claim(self._spec.group, before=until, owner=owner, reach=self._reach)
        if claim is None:
            return self._poll_s  # other consumers hold the claims; if they die, a later poll finds the work
        async with self._presence.handling(claim):
            try:
                batch = await self._consumers.transact(
                    lambda connection: self._handle(connection, claim, until), idle_s=self._delivering.idle_s
                )
            except Exception as error:
                self._delivering.note_broken(error)
                raise
            if batch is None:
                # Locking took too long: another consumer has the partition, and may have counted this as a
                # crash.
                await self._presence.take_back()
                return 0
        self._delivering.forget(batch.waiting)
        self._observer.notify(
            EventsConsumed(
                self._spec.group,
                batch.position.partition_id,
                batch.delivered.handled,
                batch.delivered.dead,
                self._clock.monotonic() - began,
            )
        )
        return 0

    async def close(self) -> None:
        await self._presence.close()

    def _tell_lag(self, lag: int) -> None:
        if lag != self._reported_lag:
            self._reported_lag = lag
            self._observer.notify(ConsumerLagChanged(self._spec.group, lag))

    async def _limit_of(self, standing: GroupPositions) -> int | None:
        """Return the offset up to which to handle. None: the partitions were changed; read the offsets
        again."""
        if standing.partitions == self._spec.partitions:
            self._insists = False
        if not self._insists:
            return standing.log_end
        if not standing.is_even:
            return standing.furthest
        if await self._consumers.repartition(self._spec.group, self._spec.partitions):
            return None
        return standing.furthest  # another consumer holds a partition right now

    async def _handle(self, connection: AsyncConnection, claim: ConsumerClaim, until: int) -> _Batch | None:
        position = await take_partition(connection, self._spec.group, claim, self._presence.owner)
        if position is None:
            return None
        found, end = await self._read(connection, position, until, is_careful=claim.is_careful)
        waiting = give_up_crashed(found, claim, self._spec.max_attempts)
        delivered = await self._delivering.deliver(connection, position.partition_id, waiting)
        if delivered.end is not None:
            end = delivered.end
        await move_partition(connection, self._consumers.dialect, self._spec.group, position, end)
        await end_claim(connection, self._spec.group, claim.place)
        return _Batch(position, end, delivered, waiting)

    async def _read(
        self, connection: AsyncConnection, position: PartitionPosition, until: int, *, is_careful: bool
    ) -> tuple[list[PendingTransaction], int]:
        scan_size = max(MIN_SCAN, 2 * self._spec.batch * position.partitions)
        first = position.next_offset
        end = await end_of_stretch(connection, min(until, first + scan_size), log_end=until)
        rows = await read_positions(connection, first, end, self._spec.topics)
        stretch = whole_transactions(
            (OutboxPosition(*row) for row in rows),
            partition=position.partition_id,
            partitions=position.partitions,
            limit=self._spec.batch,
            end=end,
        )
        if is_careful:
            stretch = first_alone(stretch)
        if not stretch.own:
            return [], stretch.end
        ends = {each.transaction_id: each.transaction_end for each in stretch.own}
        ends[stretch.own[-1].transaction_id] = stretch.end
        offsets = [each.c_offset for each in stretch.own]
        messages = await read_messages(connection, self._consumers.dialect, offsets)
        return [
            _waiting(key, [event_of(message) for message in group], ends[key])
            for key, group in groupby(messages, key=lambda message: message.transaction_id)
        ], stretch.end


def _waiting(transaction_id: UUID, events: Sequence[Event], end: int) -> PendingTransaction:
    """Make a pending transaction. After an event, the partition continues at the next event's offset."""
    return PendingTransaction(transaction_id, tuple(events), (*(each.offset for each in events[1:]), end))


def event_of(message: Any) -> Event:
    """Convert a row of the outbox to the Event that a handler gets."""
    return Event(
        id=message.id,
        type=message.event_type,
        subject=str(message.payload.get("subject") or message.aggregate_id),
        time=message.event_ts,
        host_id=message.host_id,
        aggregate_id=message.aggregate_id,
        aggregate_version=message.aggregate_version,
        topic=message.event_topic,
        offset=message.c_offset,
        payload=message.payload,
    )
