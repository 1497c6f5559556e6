"""Conformance suite for publishers and the relay: delivery at least once, in order per aggregate."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID, uuid4

import orjson
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.migrate import upgrade
from foliot.db.rows.event_rows import write_events
from foliot.instance.store import SqlStore, open_store
from foliot.model.delivery_events import EventsDeadLettered, RelayConfirmed, RelayTookOver, TopicRefused
from foliot.model.errors import BrokerUnreachableError
from foliot.model.event import DomainEvent, Observer, Observers
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.outbox.message_format import pack, topic_at_broker
from foliot.outbox.publisher import Publisher, RelayTerm, TermOverError
from foliot.outbox.relay import Relay, RelayOptions
from foliot.outbox.relays_sql import RELAY_GROUP
from foliot.planning.events import NOBODY, NewEvent
from foliot.queries.outbox_list import OutboxMessage
from foliot.service import Loop
from foliot.timing.clock import Clock, ClusterClock, SystemClock

WITHIN_S = 120.0
"""Timeout that only prevents a hanging test."""
TTL_S = 1.2
EVENT_TS = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Received:
    """A message as the broker holds it."""

    message_id: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = orjson.loads(self.body)
        return event


class RelayScene(Protocol):
    """A broker that tests can kill, start again and read completely."""

    @property
    def refuses_earlier_terms(self) -> bool: ...

    @property
    def can_be_killed(self) -> bool: ...

    def publisher(self) -> Publisher: ...

    def careful_publisher(self) -> Publisher:
        """Return a publisher that waits until the broker has written to disk, as in production.

        Tests that kill the broker use it.
        """
        ...

    async def received(self, topic: str) -> list[Received]:
        """Return all messages of a topic, in the order in which a consumer gets them."""
        ...

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Return a variant of the message that this broker refuses."""
        ...

    def kill(self) -> None: ...

    def start(self) -> None: ...


def always() -> bool:
    return True


def messages_of(topic: str, count: int, aggregates: int = 5) -> list[OutboxMessage]:
    """Return `count` messages, spread in turn over the aggregates."""
    return [
        message_of(topic, f"aggregate-{number % aggregates}", number // aggregates + 1, number + 1)
        for number in range(count)
    ]


def message_of(topic: str, aggregate_id: str, version: int, offset: int) -> OutboxMessage:
    event_id = new_id()
    payload = {"specversion": "1.0", "id": str(event_id), "type": "OrdersDue", "data": {"größe": version}}
    return OutboxMessage(
        id=event_id,
        host_id=DEFAULT_HOST_ID,
        user_id=NOBODY,
        nonce=version,
        aggregate_id=aggregate_id,
        aggregate_version=version,
        aggregate_type="Schedule",
        event_type="OrdersDue",
        event_ts=EVENT_TS,
        payload=payload,
        metadata=None,
        c_offset=offset,
        transaction_id=UUID(int=7),
        transaction_ordinal=offset,
        transaction_count=1000,
        event_topic=topic,
    )


async def write(store: SqlStore, messages: Sequence[OutboxMessage]) -> None:
    """Write messages to the outbox, as a transaction that fires does."""

    async def work(connection: AsyncConnection) -> None:
        events = [
            NewEvent(
                each.id,
                each.host_id,
                each.user_id,
                each.nonce,
                each.aggregate_id,
                each.aggregate_version,
                each.aggregate_type,
                each.event_type,
                each.event_ts,
                orjson.dumps(each.payload).decode(),
                each.event_topic,
            )
            for each in messages
        ]
        await write_events(connection, store.database.dialect, events)

    await store.database.write(Pool.API, work)


def first_arrivals(received: Sequence[Received]) -> dict[str, list[int]]:
    """Return the versions of each aggregate in order of arrival, without duplicate messages."""
    seen: set[str] = set()
    versions: dict[str, list[int]] = {}
    for each in received:
        if each.message_id not in seen:
            seen.add(each.message_id)
            versions.setdefault(each.headers["aggregate_id"], []).append(
                int(each.headers["aggregate_version"])
            )
    return versions


def assert_delivered(received: Sequence[Received], messages: Sequence[OutboxMessage]) -> None:
    """Assert that each message arrived at least once, and those of an aggregate in their order."""
    assert {each.message_id for each in received} == {str(each.id) for each in messages}
    for aggregate_id, versions in first_arrivals(received).items():
        assert versions == sorted(versions), aggregate_id


class RecordedEvents:
    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self._news = asyncio.Event()

    def notify(self, event: DomainEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the condition is true. It is checked again after each event."""
        async with asyncio.timeout(WITHIN_S):
            while not is_so():
                self._news.clear()
                await self._news.wait()

    def confirmed(self) -> int:
        return sum(each.count for each in self.events if isinstance(each, RelayConfirmed))


def relay_over(
    store: SqlStore,
    publisher: Publisher,
    told: Observer,
    name: str = "one",
    clock: Clock | None = None,
    ttl_s: float = TTL_S,
) -> Relay:
    options = RelayOptions(ttl_s=ttl_s, heartbeat_s=ttl_s / 4, poll_s=0.05)
    cluster_clock = ClusterClock(clock or SystemClock())
    return Relay(name, store.relays, publisher, cluster_clock, LocalHints(), told, options)


class RunningRelay:
    """A relay whose services run until `stop` or `die` is called."""

    def __init__(self, relay: Relay, told: RecordedEvents) -> None:
        self.relay = relay
        self._loops = [Loop(service, told) for service in relay.services]
        self._tasks = [asyncio.create_task(loop.run()) for loop in self._loops]

    async def die(self) -> None:
        """End the relay without releasing its lease, as a crash does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.relay.close()

    async def stop(self) -> None:
        self.relay.wind_up()
        for loop in self._loops:
            loop.stop()
        await asyncio.gather(*self._tasks)
        await self.relay.release()
        await self.relay.close()


class RelayConformance:
    """Tests for a publisher, and for the relay that uses it. Fixture: `relay_scene`."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqlStore]:
        store = open_store("memory", clock=SystemClock())
        await upgrade(store.database)
        yield store
        await store.close()

    @pytest.fixture
    def topic(self) -> str:
        return f"orders.{uuid4().hex}"

    async def test_what_arrives_is_the_event_with_its_id_and_headers(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        publisher, [message] = relay_scene.publisher(), messages_of(topic, 1)
        await publisher.begin(RelayTerm("a", 1))
        assert await publisher.publish([message], always) == 1
        [received] = await relay_scene.received(topic_at_broker(topic))
        assert received.message_id == str(message.id)
        assert received.event == message.payload
        assert received.headers.items() >= pack(message).headers.items()
        await publisher.close()

    async def test_the_messages_of_an_aggregate_arrive_in_their_order(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 240, aggregates=7)
        await publisher.begin(RelayTerm("a", 1))
        confirmed = 0
        while confirmed < len(messages):
            confirmed += await publisher.publish(messages[confirmed:], always)
        received = await relay_scene.received(topic_at_broker(topic))
        assert_delivered(received, messages)
        assert len(received) == len(messages)
        await publisher.close()

    async def test_topics_of_any_name_are_kept_apart(self, relay_scene: RelayScene, topic: str) -> None:
        names = [f".{topic}..", f"{topic}_", f"{topic}/*#>é", f"{topic}{'長' * 90}", f"{topic}{'長' * 91}"]
        publisher = relay_scene.publisher()
        await publisher.begin(RelayTerm("a", 1))
        messages = [message_of(name, "one", number + 1, number + 1) for number, name in enumerate(names)]
        confirmed = 0
        while confirmed < len(messages):
            confirmed += await publisher.publish(messages[confirmed:], always)
        for message in messages:
            received = await relay_scene.received(topic_at_broker(message.event_topic))
            assert [each.message_id for each in received] == [str(message.id)]
        await publisher.close()

    async def test_one_that_may_not_be_trusted_sends_nothing_more(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 20, aggregates=2)
        await publisher.begin(RelayTerm("a", 1))
        assert await publisher.publish(messages, lambda: False) == 0
        asked = iter(range(1000))
        confirmed = await publisher.publish(messages, lambda: next(asked) < 6)
        received = await relay_scene.received(topic_at_broker(topic))
        assert confirmed < 20 or next(asked) <= 6
        assert {each.message_id for each in received} >= {str(each.id) for each in messages[:confirmed]}
        await publisher.close()

    async def test_what_the_broker_refuses_is_not_confirmed_and_nothing_goes_past_it(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 8, aggregates=1)
        messages[3] = await relay_scene.refused(messages[3])
        await publisher.begin(RelayTerm("a", 1))
        confirmed = 0
        for _ in range(12):
            try:
                confirmed += await publisher.publish(messages[confirmed:], always)
            except BrokerUnreachableError:
                await publisher.begin(RelayTerm("a", 1))
        assert confirmed == 3
        after = {str(each.id) for each in messages[3:]}
        received = await relay_scene.received(topic_at_broker(topic))
        assert not after & {each.message_id for each in received}
        assert {each.message_id for each in received} == {str(each.id) for each in messages[:3]}
        await publisher.close()

    async def test_the_relay_goes_on_without_what_the_broker_refuses(
        self, relay_scene: RelayScene, topic: str, store: SqlStore
    ) -> None:
        messages = messages_of(topic, 8, aggregates=2)
        messages[3] = await relay_scene.refused(messages[3])
        await write(store, messages)
        told = RecordedEvents()
        running = RunningRelay(relay_over(store, relay_scene.publisher(), told), told)

        def is_past() -> bool:
            return any(each.offset == 8 for each in told.events if isinstance(each, RelayConfirmed))

        await told.until(is_past)
        await running.stop()
        others = [each for each in messages if each is not messages[3]]
        received = await relay_scene.received(topic_at_broker(topic))
        assert_delivered(received, others)
        parked, letters = await store.relays.parked(), await store.dead_letters.of_group(RELAY_GROUP)
        if parked:
            assert parked == {messages[3].event_topic: 4}
        else:
            assert [each.events[0]["id"] for each in letters] == [str(messages[3].id)]
        assert any(isinstance(each, (TopicRefused, EventsDeadLettered)) for each in told.events)

    async def test_a_large_event_arrives_among_small_ones(self, relay_scene: RelayScene, topic: str) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 6, aggregates=2)
        messages[2].payload["data"] = "x" * 700_000
        await publisher.begin(RelayTerm("a", 1))
        confirmed = 0
        while confirmed < len(messages):
            confirmed += await publisher.publish(messages[confirmed:], always)
        received = await relay_scene.received(topic_at_broker(topic))
        assert_delivered(received, messages)
        assert max(len(each.body) for each in received) > 700_000
        await publisher.close()

    async def test_an_earlier_term_is_refused_where_the_broker_can(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        messages = messages_of(topic, 6, aggregates=1)
        old, new = relay_scene.publisher(), relay_scene.publisher()
        await old.begin(RelayTerm("b", 1))
        assert await old.publish(messages[:2], always) == 2
        await new.begin(RelayTerm("b", 2))
        if relay_scene.refuses_earlier_terms:
            with pytest.raises((TermOverError, BrokerUnreachableError)):
                await old.publish(messages[2:], always)
        assert await new.publish(messages[2:4], always) == 2
        received = await relay_scene.received(topic_at_broker(topic))
        assert [each.message_id for each in received] == [str(each.id) for each in messages[:4]]
        other = relay_scene.publisher()
        await other.begin(RelayTerm("c", 1))
        assert await other.publish(messages[4:], always) == 2, "another outbox has terms of its own"
        assert await new.publish([replace(messages[5], id=new_id())], always) == 1
        for each in (old, new, other):
            await each.close()

    async def test_what_was_confirmed_survives_a_kill_and_the_rest_follows(
        self, relay_scene: RelayScene, topic: str
    ) -> None:
        if not relay_scene.can_be_killed:
            pytest.skip("this broker is not ours to kill")
        publisher, messages = relay_scene.careful_publisher(), messages_of(topic, 30)
        await publisher.begin(RelayTerm("a", 1))
        confirmed = await publisher.publish(messages[:10], always)
        assert confirmed == 10
        relay_scene.kill()
        try:
            with pytest.raises(BrokerUnreachableError):
                await publisher.publish(messages[10:], always)
            with pytest.raises(BrokerUnreachableError):
                await publisher.begin(RelayTerm("a", 1))
        finally:
            relay_scene.start()
        await _begun(publisher)
        while confirmed < len(messages):
            confirmed += await publisher.publish(messages[confirmed:], always)
        assert_delivered(await relay_scene.received(topic_at_broker(topic)), messages)
        await publisher.close()

    # --- the relay over it ------------------------------------------------------------------------

    async def test_a_relay_ships_the_outbox_and_goes_on_where_another_died(
        self, relay_scene: RelayScene, store: SqlStore, topic: str
    ) -> None:
        messages = messages_of(topic, 600, aggregates=11)
        await write(store, messages[:300])
        told = {name: RecordedEvents() for name in ("one", "two")}
        both = RecordedEvents()
        relays = {
            name: RunningRelay(
                relay_over(store, relay_scene.publisher(), Observers([told[name], both]), name), told[name]
            )
            for name in told
        }
        await both.until(lambda: both.confirmed() > 0)
        [active] = [name for name in told if told[name].confirmed()]
        other = "two" if active == "one" else "one"
        assert not any(isinstance(event, RelayTookOver) for event in told[other].events)
        await relays[active].die()
        await write(store, messages[300:])
        await told[other].until(lambda: _offset(told[other]) == 600)
        await relays[other].stop()
        assert_delivered(await relay_scene.received(topic_at_broker(topic)), messages)

    async def test_a_broker_killed_under_load_loses_nothing(
        self, relay_scene: RelayScene, store: SqlStore, topic: str
    ) -> None:
        if not relay_scene.can_be_killed:
            pytest.skip("this broker is not ours to kill")
        messages = messages_of(topic, 900, aggregates=13)
        told = RecordedEvents()
        running = RunningRelay(relay_over(store, relay_scene.careful_publisher(), told), told)
        await write(store, messages[:300])
        await told.until(lambda: told.confirmed() > 0)
        await write(store, messages[300:600])
        relay_scene.kill()
        try:
            await write(store, messages[600:])
        finally:
            relay_scene.start()
        await told.until(lambda: _offset(told) == 900)
        await running.stop()
        assert_delivered(await relay_scene.received(topic_at_broker(topic)), messages)


def _offset(told: RecordedEvents) -> int:
    return max((each.offset for each in told.events if isinstance(each, RelayConfirmed)), default=0)


async def _begun(publisher: Publisher) -> None:
    """Begin a term; retry, since a broker that has just started may listen before it can serve."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await publisher.begin(RelayTerm("a", 1))
                return
            except BrokerUnreachableError:
                await asyncio.sleep(0.1)
