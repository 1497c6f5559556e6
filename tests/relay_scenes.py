"""Each broker as a scene for the relay tests: it can be killed, started and read completely."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aio_pika
import nats
from aiokafka import AIOKafkaConsumer, TopicPartition
from nats.js.api import StreamInfo
from redis.asyncio import Redis

from foliot.outbox.kafka import KafkaPublisher
from foliot.outbox.message_format import topic_at_broker
from foliot.outbox.nats import STREAM as NATS_STREAM
from foliot.outbox.nats import NatsPublisher, subject_of
from foliot.outbox.rabbitmq import QUEUE, RabbitPublisher
from foliot.outbox.redis import STREAM, RedisPublisher
from foliot.queries.outbox_list import OutboxMessage
from tests.brokers import Broker, KafkaBroker
from tests.conformance.suites.relay import Received, RelayScene

CALL_S = 10.0


@dataclass
class KafkaScene:
    broker: Broker

    @property
    def refuses_earlier_terms(self) -> bool:
        return bool(getattr(self.broker, "is_real", False))

    @property
    def can_be_killed(self) -> bool:
        return isinstance(self.broker, KafkaBroker)

    def publisher(self, options: str = "") -> KafkaPublisher:
        without = "" if self.refuses_earlier_terms else "?transactions=off"
        return KafkaPublisher(self.broker.url + (options or without), call_s=CALL_S)

    def careful_publisher(self) -> KafkaPublisher:
        return self.publisher()

    async def received(self, topic: str, isolation: str = "read_committed") -> list[Received]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.broker.url.removeprefix("kafka://"),
            isolation_level=isolation,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            await consumer._client._wait_on_metadata(topic)
            partitions = [TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic) or ()]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            # Use the ends of all written records: a transaction's records become readable only after its
            # commit.
            ends = await self._ends(partitions)
            found: list[Received] = []
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    for record in records:
                        headers = {name: value.decode() for name, value in record.headers}
                        assert record.key.decode() == headers["aggregate_id"]
                        found.append(Received(headers["ce-id"], headers, record.value))
            return found
        finally:
            await consumer.stop()

    async def _ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.broker.url.removeprefix("kafka://"))
        await consumer.start()
        try:
            ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
            return ends
        finally:
            await consumer.stop()

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Return a message above the broker's default limit;

        for the mock, which has none, above the client's.
        """
        size = 1_100_000 if self.refuses_earlier_terms else 17_000_000
        return replace(message, payload=message.payload | {"data": "x" * size})

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@dataclass
class RabbitScene:
    broker: Broker
    taken: dict[str, list[Received]] = field(default_factory=dict)
    refuses_earlier_terms = False
    can_be_killed = True

    def publisher(self, options: str = "") -> RabbitPublisher:
        return RabbitPublisher(self.broker.url + options, call_s=CALL_S, settle_s=0)

    def careful_publisher(self) -> RabbitPublisher:
        return RabbitPublisher(self.broker.url, call_s=CALL_S)

    async def received(self, topic: str) -> list[Received]:
        """Return all messages. Reading removes them from the queue, so they are stored here."""
        found = self.taken.setdefault(topic, [])
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(QUEUE + topic, passive=True)
            while message := await queue.get(fail=False, no_ack=True):
                assert message.message_id is not None
                assert message.delivery_mode is aio_pika.DeliveryMode.PERSISTENT
                headers = {name: str(value) for name, value in message.headers.items()}
                headers["content-type"] = str(message.content_type)
                found.append(Received(message.message_id, headers, message.body))
        return found

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Return a message for a full queue, which rejects it."""
        topic = f"{message.event_topic}-full"
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            full: dict[str, Any] = {"x-max-length": 0, "x-overflow": "reject-publish"}
            await channel.declare_queue(QUEUE + topic, durable=True, arguments=full)
        return replace(message, event_topic=topic)

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@dataclass
class NatsScene:
    broker: Broker
    refuses_earlier_terms = False
    can_be_killed = True

    def publisher(self) -> NatsPublisher:
        return NatsPublisher(self.broker.url, call_s=CALL_S)

    def careful_publisher(self) -> NatsPublisher:
        return self.publisher()

    async def received(self, topic: str) -> list[Received]:
        client = await nats.connect(self.broker.url, allow_reconnect=False)
        stream = client.jetstream()
        subject = subject_of(topic)
        info: StreamInfo = await stream.stream_info(NATS_STREAM, subjects_filter=subject)
        count = (info.state.subjects or {}).get(subject, 0)
        found: list[Received] = []
        consumer = await stream.pull_subscribe(subject, stream=NATS_STREAM)
        while len(found) < count:
            for each in await consumer.fetch(min(count - len(found), 500), timeout=10):
                headers = dict(each.headers or {})
                found.append(Received(headers.pop("Nats-Msg-Id"), headers, each.data))
                await each.ack()
        await client.close()
        return found

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Return a message larger than the server's limit."""
        return replace(message, payload=message.payload | {"data": "x" * 1_100_000})

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@dataclass
class RedisScene:
    broker: Broker
    redis: Redis
    refuses_earlier_terms = True
    can_be_killed = True

    def publisher(self, options: str = "") -> RedisPublisher:
        return RedisPublisher(self.broker.url + options, call_s=CALL_S)

    def careful_publisher(self) -> RedisPublisher:
        return self.publisher()

    async def received(self, topic: str) -> list[Received]:
        entries: Any = await self.redis.xrange(STREAM + topic)
        found = [{name.decode(): value for name, value in fields.items()} for _id, fields in entries]
        return [
            Received(
                fields["ce-id"].decode(),
                {name: value.decode() for name, value in fields.items() if name != "event"},
                fields["event"],
            )
            for fields in found
        ]

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Return a message for a stream whose key has a value of another type."""
        topic = f"{message.event_topic}-taken"
        await self.redis.set(STREAM + topic_at_broker(topic), "mine")
        return replace(message, event_topic=topic)

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@asynccontextmanager
async def _on_redis(broker: Broker) -> AsyncIterator[RelayScene]:
    async with Redis.from_url(broker.url) as redis:
        yield RedisScene(broker, redis)


def _on(make: Callable[[Broker], RelayScene]) -> Callable[[Broker], AbstractAsyncContextManager[RelayScene]]:
    @asynccontextmanager
    async def opened(broker: Broker) -> AsyncIterator[RelayScene]:
        yield make(broker)

    return opened


RELAY_SCENES: dict[str, Callable[[Broker], AbstractAsyncContextManager[RelayScene]]] = {
    "redis": _on_redis,
    "nats": _on(NatsScene),
    "rabbitmq": _on(RabbitScene),
    "kafka": _on(KafkaScene),
}
"""Scenes by name of the broker."""
