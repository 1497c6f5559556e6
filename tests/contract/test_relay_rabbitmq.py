"""The relay to a real RabbitMQ."""

from dataclasses import dataclass, field, replace
from typing import Any

import aio_pika
import pytest
from tests.brokers import Broker

from foliot.outbox.protocol import Term
from foliot.outbox.rabbitmq import EXCHANGE, QUEUE, RabbitPublisher
from foliot.store.outbox_list import OutboxMessage
from foliot.testing.conformance.relay import Received, RelayConformance, always, messages_of
from foliot.transport.protocol import BrokerUnreachableError

CALL_S = 10.0


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
        """What is read is gone from the queue, so it is kept here."""
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
        """Its queue is full, and says so."""
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


@pytest.fixture
def relay_scene(rabbitmq_broker: Broker) -> RabbitScene:
    return RabbitScene(rabbitmq_broker)


class TestRabbitMq(RelayConformance):
    """A topic exchange, and a queue for each topic."""

    async def test_what_no_queue_takes_is_not_confirmed(self, relay_scene: RabbitScene, topic: str) -> None:
        publisher, messages = relay_scene.publisher("?queues=off"), messages_of(topic, 2)
        await publisher.begin(Term("a", 1))
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
        await publisher.begin(Term("a", 1))
        assert await publisher.publish(messages_of(topic, 1), always) == 1
        async with await aio_pika.connect(relay_scene.broker.url) as connection:
            channel = await connection.channel()
            with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed):
                await channel.declare_queue(QUEUE + topic, durable=True)
        await publisher.close()
