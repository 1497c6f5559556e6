"""The relay to a real NATS server with JetStream."""

from dataclasses import dataclass, replace

import nats
import pytest
from nats.js.api import StreamInfo
from tests.brokers import Broker

from foliot.outbox.nats import STREAM, NatsPublisher, subject_of
from foliot.outbox.protocol import Term
from foliot.store.outbox_list import OutboxMessage
from foliot.testing.conformance.relay import Received, RelayConformance, always, messages_of

CALL_S = 10.0


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
        info: StreamInfo = await stream.stream_info(STREAM, subjects_filter=subject)
        count = (info.state.subjects or {}).get(subject, 0)
        found: list[Received] = []
        consumer = await stream.pull_subscribe(subject, stream=STREAM)
        while len(found) < count:
            for each in await consumer.fetch(count - len(found), timeout=10):
                headers = dict(each.headers or {})
                found.append(Received(headers.pop("Nats-Msg-Id"), headers, each.data))
                await each.ack()
        await client.close()
        return found

    async def refused(self, message: OutboxMessage) -> OutboxMessage:
        """Larger than the server takes."""
        return replace(message, payload=message.payload | {"data": "x" * 1_100_000})

    def kill(self) -> None:
        self.broker.stop()

    def start(self) -> None:
        self.broker.start()


@pytest.fixture
def relay_scene(nats_broker: Broker) -> NatsScene:
    return NatsScene(nats_broker)


class TestNats(RelayConformance):
    """JetStream."""

    async def test_what_is_sent_again_soon_is_dropped_by_the_server(
        self, relay_scene: NatsScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 3)
        await publisher.begin(Term("a", 1))
        assert await publisher.publish(messages, always) == 3
        assert await publisher.publish(messages, always) == 3
        assert len(await relay_scene.received(topic)) == 3
        await publisher.close()
