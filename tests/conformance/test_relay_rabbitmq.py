"""The relay to a real RabbitMQ."""

import aio_pika
import pytest
from tests.brokers import Broker
from tests.conformance.suites.relay import RelayConformance, always, messages_of
from tests.relay_scenes import RabbitScene

from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.publisher import RelayTerm
from foliot.outbox.rabbitmq import EXCHANGE, QUEUE


@pytest.fixture
def relay_scene(rabbitmq_broker: Broker) -> RabbitScene:
    return RabbitScene(rabbitmq_broker)


class TestRabbitMq(RelayConformance):
    """A topic exchange, and a queue for each topic."""

    async def test_what_no_queue_takes_is_not_confirmed(self, relay_scene: RabbitScene, topic: str) -> None:
        publisher, messages = relay_scene.publisher("?queues=off"), messages_of(topic, 2)
        await publisher.begin(RelayTerm("a", 1))
        with pytest.raises(BrokerUnreachableError):
            await publisher.publish(messages, always)
        async with await aio_pika.connect(relay_scene.broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(QUEUE + topic, durable=True)
            await queue.bind(EXCHANGE, "orders.#")
            assert await publisher.publish(messages, always) == 2
        assert len(await relay_scene.received(topic)) == 2
        await publisher.close()

    async def test_a_queue_survives_with_what_it_holds_on_several_servers(
        self, relay_scene: RabbitScene, topic: str
    ) -> None:
        """A quorum queue, where the server has them: declaring it as another kind is refused."""
        publisher = relay_scene.publisher()
        await publisher.begin(RelayTerm("a", 1))
        assert await publisher.publish(messages_of(topic, 1), always) == 1
        async with await aio_pika.connect(relay_scene.broker.url) as connection:
            channel = await connection.channel()
            with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed):
                await channel.declare_queue(QUEUE + topic, durable=True)
        await publisher.close()
