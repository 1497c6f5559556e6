"""The relay to Kafka: Apache Kafka itself, or the cluster that stands in for it (`tests.brokers`)."""

from dataclasses import dataclass, replace

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from tests.brokers import Broker, KafkaBroker

from foliot.outbox.kafka import KafkaPublisher
from foliot.outbox.protocol import Term
from foliot.store.outbox_list import OutboxMessage
from foliot.testing.conformance.relay import (
    Received,
    RelayConformance,
    always,
    assert_delivered,
    messages_of,
)
from foliot.transport.protocol import BrokerUnreachableError

CALL_S = 8.0


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
            # Of all that was written: what a transaction wrote can be read only a moment after its commit.
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
        """Larger than a broker takes by default; what stands in for one takes all that the client sends."""
        size = 1_100_000 if self.refuses_earlier_terms else 17_000_000
        return replace(message, payload=message.payload | {"data": "x" * size})

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@pytest.fixture
def relay_scene(kafka_broker: Broker) -> KafkaScene:
    return KafkaScene(kafka_broker)


class TestKafka(RelayConformance):
    """Transactions, keyed by aggregate."""

    async def test_a_batch_that_is_given_up_is_not_seen_by_who_reads_committed_messages(
        self, relay_scene: KafkaScene, topic: str
    ) -> None:
        if not relay_scene.refuses_earlier_terms:
            pytest.skip("the cluster that stands in knows no transactions")
        publisher, messages = relay_scene.publisher(), messages_of(topic, 6)
        await publisher.begin(Term("e", 1))
        asked = iter(range(100))
        assert await publisher.publish(messages, lambda: next(asked) < 3) == 0
        assert await publisher.publish(messages[:1], always) == 1
        received = await relay_scene.received(topic)
        assert [each.message_id for each in received] == [str(messages[0].id)]
        everything = await relay_scene.received(topic, "read_uncommitted")
        assert len(everything) > 1, "the others were there, and aborted"
        await publisher.close()

    async def test_a_topic_that_the_broker_does_not_make_by_itself_is_made(
        self, relay_scene: KafkaScene, topic: str
    ) -> None:
        if not relay_scene.refuses_earlier_terms:
            pytest.skip("the cluster that stands in has no controller to ask")
        publisher = relay_scene.publisher("?transactions=off&partitions=5")
        await publisher._make(topic)
        await publisher._make(topic)  # which is there now
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=relay_scene.broker.url.removeprefix("kafka://"))
        await consumer.start()
        assert len(consumer.partitions_for_topic(topic) or ()) == 5
        await consumer.stop()
        with pytest.raises(BrokerUnreachableError):
            await publisher._make("no/name")

    async def test_without_transactions_the_order_holds_as_well(
        self, relay_scene: KafkaScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher("?transactions=off"), messages_of(topic, 60)
        await publisher.begin(Term("f", 1))
        assert await publisher.publish(messages, always) == 60
        received = await relay_scene.received(topic)
        assert_delivered(received, messages)
        assert len(received) == 60
        await publisher.close()
