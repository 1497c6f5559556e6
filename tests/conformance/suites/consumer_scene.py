"""Helpers for the consumer suite: write events to the outbox, and record which ones a handler received."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Column, MetaData, String, Table, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.conformance.suites.scene import Scene

from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.rows.event_rows import write_events
from foliot.db.tables.events import consumer_claim_t, consumer_offsets, outbox_message_t
from foliot.instance.store import SqlStore
from foliot.model.event import DomainEvent
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.outbox.consumer import Consumer
from foliot.outbox.dead_letters import DeadLetters
from foliot.outbox.handlers import ConsumerSpec, EventTransaction, Handler
from foliot.outbox.partitions import partition_of
from foliot.planning.events import NOBODY, NewEvent
from foliot.timing.clock import VirtualClock

POLL_S = 7.0
MAX_STEPS = 200
handled = Table("handled", MetaData(), Column("event_id", String(64)), Column("group_id", String(64)))
"""A table that the handler writes to. It has no primary key, so an event handled twice has two rows."""


def event_at(time: datetime, aggregate: str, version: int, *, host_id: UUID, topic: str) -> NewEvent:
    """Return an event as firing would plan it."""
    event_id, kind = new_id(time), "OrderPlaced"
    payload = {
        "specversion": "1.0",
        "id": str(event_id),
        "source": "/shop",
        "type": kind,
        "subject": aggregate,
        "time": time.isoformat(),
        "host": str(host_id),
        "aggregateversion": version,
        "data": {"n": version},
    }
    return NewEvent(
        event_id,
        host_id,
        NOBODY,
        version,
        aggregate,
        version,
        "Order",
        kind,
        time,
        json.dumps(payload),
        topic,
    )


class Outbox:
    """A scene with an outbox that tests write to, and a handler that records the events it receives."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self.told: list[DomainEvent] = []
        self.hints = LocalHints()
        self.calls: list[tuple[UUID, tuple[UUID, ...]]] = []
        self.fails: Callable[[EventTransaction], BaseException | None] = lambda _: None
        """Returns the error that the handler raises after its work. None: it succeeds."""
        self._versions: dict[str, int] = {}

    def notify(self, event: DomainEvent) -> None:
        self.told.append(event)

    async def make_table(self) -> None:
        async def work(connection: AsyncConnection) -> None:
            await connection.run_sync(handled.metadata.create_all)
            await connection.execute(delete(handled))

        await self.scene.store.database.write(Pool.API, work)

    # --- writing ----------------------------------------------------------------------------------

    async def write(
        self,
        *aggregates: str,
        hosts: Sequence[UUID] = (),
        topics: Sequence[str] = (),
        store: SqlStore | None = None,
    ) -> list[UUID]:
        """Write one event per aggregate, all in one transaction. Return the event ids."""
        events = await self.events(*aggregates, hosts=hosts, topics=topics)
        database = (store or self.scene.store).database

        async def work(connection: AsyncConnection) -> None:
            await write_events(connection, database.dialect, events)

        await database.write(Pool.WORK, work)
        return [each.id for each in events]

    async def events(
        self, *aggregates: str, hosts: Sequence[UUID] = (), topics: Sequence[str] = ()
    ) -> list[NewEvent]:
        now = await self.scene.now()
        found = []
        for number, aggregate in enumerate(aggregates):
            self._versions[aggregate] = self._versions.get(aggregate, 0) + 1
            found.append(
                event_at(
                    now,
                    aggregate,
                    self._versions[aggregate],
                    host_id=hosts[number] if hosts else DEFAULT_HOST_ID,
                    topic=topics[number] if topics else "orders",
                )
            )
        return found

    # --- consuming --------------------------------------------------------------------------------

    async def handle(self, transaction: EventTransaction) -> None:
        self.calls.append((transaction.transaction_id, tuple(each.id for each in transaction.events)))
        for event in transaction.events:
            await transaction.connection.execute(insert(handled).values(event_id=str(event.id)))
        error = self.fails(transaction)
        if error is not None:
            raise error

    def spec(self, group: str = "billing", handler: Handler | None = None, **fields: Any) -> ConsumerSpec:
        return ConsumerSpec(group=group, handler=handler or self.handle, **fields)

    def consumer(
        self, spec: ConsumerSpec | None = None, store: SqlStore | None = None, **fields: Any
    ) -> Consumer:
        consumers = (store or self.scene.store).consumers
        return Consumer(spec or self.spec(**fields), consumers, self.clock, self.hints, self, poll_s=POLL_S)

    async def consume(self, consumer: Consumer) -> None:
        """Step the consumer until it has no more work."""
        for _ in range(MAX_STEPS):
            if await consumer.step() == POLL_S:
                return
        raise AssertionError("it does not come to rest")

    async def age_claims(self) -> None:
        """Set the time of all existing claims to one minute ago."""
        database = self.scene.store.database
        long_ago = await self.scene.now() - timedelta(minutes=1)

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(update(consumer_claim_t).values(claimed_ts=long_ago))

        await database.write(Pool.WORK, work)

    def letters(self, spec: ConsumerSpec | None = None) -> DeadLetters:
        store = self.scene.store
        return DeadLetters(spec or self.spec(), store.dead_letters, store.consumers, self.clock)

    # --- looking ----------------------------------------------------------------------------------

    async def handled(self) -> list[UUID]:
        """Return the ids of the events whose handling was committed."""
        return [UUID(row.event_id) for row in await self.scene.rows(select(handled.c.event_id))]

    async def offsets(self, group: str = "billing") -> list[int]:
        table = consumer_offsets
        statement = (
            select(table.c.next_offset).where(table.c.group_id == group).order_by(table.c.partition_id)
        )
        return [row.next_offset for row in await self.scene.rows(statement)]

    async def left(self) -> list[int]:
        return [row.c_offset for row in await self.scene.rows(select(outbox_message_t.c.c_offset))]

    def of(self, kind: type[DomainEvent]) -> list[Any]:
        return [each for each in self.told if isinstance(each, kind)]


def two_hosts(partitions: int = 2) -> tuple[UUID, UUID]:
    """Return two hosts whose events go to partitions 0 and 1."""
    hosts = [UUID(int=number) for number in range(1, 200)]
    first, second = (next(h for h in hosts if partition_of(h, partitions) == each) for each in (0, 1))
    return first, second
