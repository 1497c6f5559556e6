"""The relay to a real NATS server with JetStream."""

import pytest
from tests.brokers import Broker
from tests.conformance.suites.relay import RelayConformance, always, messages_of
from tests.relay_scenes import NatsScene

from foliot.outbox.publisher import RelayTerm


@pytest.fixture
def relay_scene(nats_broker: Broker) -> NatsScene:
    return NatsScene(nats_broker)


class TestNats(RelayConformance):
    """JetStream."""

    async def test_what_is_sent_again_soon_is_dropped_by_the_server(
        self, relay_scene: NatsScene, topic: str
    ) -> None:
        publisher, messages = relay_scene.publisher(), messages_of(topic, 3)
        await publisher.begin(RelayTerm("a", 1))
        assert await publisher.publish(messages, always) == 3
        assert await publisher.publish(messages, always) == 3
        assert len(await relay_scene.received(topic)) == 3
        await publisher.close()
