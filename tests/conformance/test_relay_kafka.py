"""The relay to Kafka: Apache Kafka itself, or the cluster that stands in for it (`tests.brokers`)."""

import pytest
from aiokafka import AIOKafkaConsumer
from tests.brokers import Broker, MockKafka
from tests.conformance.suites.relay import (
    RelayConformance,
    always,
    assert_delivered,
    messages_of,
)
from tests.relay_scenes import KafkaScene

from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.publisher import RelayTerm


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
        await publisher.begin(RelayTerm("e", 1))
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
        await publisher.begin(RelayTerm("f", 1))
        assert await publisher.publish(messages, always) == 60
        received = await relay_scene.received(topic)
        assert_delivered(received, messages)
        assert len(received) == 60
        await publisher.close()

    async def test_while_nobody_could_make_a_topic_the_broker_counts_as_away(self, topic: str) -> None:
        """As while a controller is elected; the cluster that stands in never has one."""
        broker = MockKafka()
        with pytest.raises(BrokerUnreachableError, match="no controller"):
            await KafkaScene(broker).publisher()._make(topic)
        broker.remove()
