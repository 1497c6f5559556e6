"""Event handlers over Kafka: repeated messages are recognised, unreadable ones stop nothing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiokafka import AIOKafkaProducer
from sqlalchemy import func, select
from tests.brokers import Broker, KafkaBroker, MockKafka
from tests.conformance.suites.consumer_scene import Outbox
from tests.conformance.suites.scene import Scene
from tests.engine import until

from foliot.db.tables.events import consumed_event_t
from foliot.model.delivery_events import EventsConsumed
from foliot.model.errors import FoliotError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.outbox.handlers import ConsumerSpec, EventTransaction
from foliot.outbox.kafka_consumer import KafkaConsumer
from foliot.outbox.message_format import pack
from foliot.outbox.message_parser import UNREADABLE

WITHIN_S = 60.0


class Topic:
    """A topic of its own for the test, filled as the relay would, and the consumers that read it."""

    def __init__(self, outbox: Outbox, broker: Broker) -> None:
        self.outbox = outbox
        self.name = f"orders-{uuid4().hex}"
        self._broker = broker
        self._producer: AIOKafkaProducer | None = None
        self._consumers: list[KafkaConsumer] = []

    async def send_outbox(self) -> None:
        """All of the outbox, once more."""
        for message in await self.outbox.scene.store.outbox.after(DEFAULT_HOST_ID, 0, limit=1000):
            packed = pack(message)
            headers = [(name, value.encode()) for name, value in packed.headers.items()]
            await self.send(packed.body, key=packed.key.encode(), headers=headers)

    async def send(self, value: bytes, **fields: Any) -> None:
        if self._producer is None:
            server = self._broker.url.removeprefix("kafka://")
            self._producer = AIOKafkaProducer(bootstrap_servers=server, acks="all")
            await self._producer.start()
        await self._producer.send_and_wait(self.name, value, partition=0, **fields)

    def consumer(self, **fields: Any) -> KafkaConsumer:
        fields = {"group": f"billing-{self.name}", "handler": self.outbox.handle, **fields}
        spec = ConsumerSpec(topics=(self.name,), source=self._broker.url, **fields)
        store = self.outbox.scene.store
        self._consumers.append(KafkaConsumer(spec, store.consumers, self.outbox.clock, self.outbox))
        return self._consumers[-1]

    async def consume(self, consumer: KafkaConsumer, ids: Sequence[UUID]) -> None:
        """Step until all of these are handled."""
        async with asyncio.timeout(WITHIN_S):
            while not set(ids) <= set(await self.outbox.handled()):
                await consumer.step()

    async def close(self) -> None:
        for consumer in self._consumers:
            await consumer.close()
        if self._producer is not None:
            await self._producer.stop()


@pytest.fixture
async def outbox(scene: Scene) -> Outbox:
    found = Outbox(scene)
    await found.make_table()
    return found


@pytest.fixture
async def topic(outbox: Outbox, kafka_broker: Broker) -> AsyncIterator[Topic]:
    found = Topic(outbox, kafka_broker)
    yield found
    await found.close()


class TestKafkaConsumer:
    databases = ("postgres",)

    async def test_what_a_relay_has_shipped_is_handled_in_order_and_once(
        self, outbox: Outbox, topic: Topic, kafka_broker: Broker
    ) -> None:
        ids = [*await outbox.write("a", "b"), *await outbox.write("a")]
        await topic.send_outbox()
        await topic.send_outbox()
        last = await outbox.write("c")
        await topic.send_outbox()
        consumer = topic.consumer()
        await topic.consume(consumer, last)
        assert await outbox.handled() == [*ids, *last]
        if not isinstance(kafka_broker, MockKafka):  # which knows no transactions
            assert [len(events) for _, events in outbox.calls] == [2, 1, 1], "a transaction stays together"

    async def test_an_event_is_the_same_as_from_the_database(self, outbox: Outbox, topic: Topic) -> None:
        seen: list[EventTransaction] = []

        async def keep(transaction: EventTransaction) -> None:
            seen.append(transaction)

        await outbox.write("a", topics=[topic.name])
        await topic.send_outbox()
        await outbox.consume(outbox.consumer(outbox.spec(handler=keep)))
        consumer = topic.consumer(handler=keep)
        async with asyncio.timeout(WITHIN_S):
            while len(seen) < 2:
                await consumer.step()
        here, there = seen
        assert (here.transaction_id, here.attempt) == (there.transaction_id, there.attempt)
        assert here.events == there.events

    async def test_what_was_not_committed_comes_again_also_to_the_same_consumer(
        self, outbox: Outbox, topic: Topic
    ) -> None:
        ids = await outbox.write("a")
        await topic.send_outbox()

        class Died(BaseException):
            pass

        outbox.fails = lambda _: Died()
        consumer = topic.consumer()
        with pytest.raises(Died):
            await topic.consume(consumer, ids)
        assert await outbox.handled() == []
        outbox.fails = lambda _: None
        await topic.consume(consumer, ids)
        assert await outbox.handled() == ids

    async def test_another_consumer_goes_on_where_the_last_one_has_committed(
        self, outbox: Outbox, topic: Topic
    ) -> None:
        ids = await outbox.write("a")
        await topic.send_outbox()
        one = topic.consumer()
        await topic.consume(one, ids)
        await one.close()
        [later] = await outbox.write("b")
        await topic.send_outbox()
        await topic.consume(topic.consumer(), [later])
        assert await outbox.handled() == [*ids, later]
        assert len(outbox.calls) == 2

    async def test_a_batch_that_takes_long_is_cut_short_and_what_is_left_comes_again(
        self, outbox: Outbox, topic: Topic
    ) -> None:
        ids = [each for name in "abc" for each in await outbox.write(name)]
        await topic.send_outbox()

        async def take_long(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            outbox.clock.advance(31)

        await topic.consume(topic.consumer(handler=take_long), ids)
        assert await outbox.handled() == ids
        assert [each.handled for each in outbox.of(EventsConsumed)] == [1, 1, 1]

    async def test_two_consumers_and_a_broker_that_is_killed_do_every_events_work_once(
        self, outbox: Outbox, topic: Topic, kafka_broker: Broker
    ) -> None:
        if not isinstance(kafka_broker, KafkaBroker):
            pytest.skip("this Kafka can't be killed")
        ids = [each for _ in range(30) for each in await outbox.write("a", "b")]
        await topic.send_outbox()
        is_done = asyncio.Event()

        async def run(consumer: KafkaConsumer) -> None:
            while not is_done.is_set():
                with suppress(FoliotError):
                    await consumer.step()

        running = [asyncio.create_task(run(topic.consumer(batch=4))) for _ in range(2)]

        async def has(count: int) -> bool:
            return len(await outbox.handled()) >= count

        await until(lambda: has(10), within_s=WITHIN_S)
        await asyncio.to_thread(kafka_broker.stop)
        await asyncio.to_thread(kafka_broker.start)
        later = await outbox.write("a", "b")
        await topic.send_outbox()
        await until(lambda: has(len(ids) + 2), within_s=WITHIN_S)
        is_done.set()
        await asyncio.gather(*running)
        assert await outbox.handled() == [*ids, *later]

    async def test_one_that_fails_and_one_that_is_no_event_become_dead_letters(
        self, outbox: Outbox, topic: Topic
    ) -> None:
        ids = await outbox.write("a")
        [bad] = await outbox.write("b")
        [good] = await outbox.write("c")
        await topic.send(b"\xff no JSON \x00")
        await topic.send_outbox()
        outbox.fails = lambda found: ValueError("bad") if found.events[0].id == bad else None
        consumer = topic.consumer()
        await topic.consume(consumer, [good])
        assert await outbox.handled() == [*ids, good]
        letters = await outbox.scene.store.dead_letters.of_group(f"billing-{topic.name}")
        by_type = {letter.events[0]["type"]: letter for letter in letters}
        assert by_type[UNREADABLE].error.startswith("the message can't be read")
        assert by_type["OrderPlaced"].error == "ValueError: bad"
        [[noted]] = await outbox.scene.rows(select(func.count()).select_from(consumed_event_t))
        assert noted == 4
