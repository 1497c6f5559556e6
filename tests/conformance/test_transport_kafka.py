"""The transport over Kafka against its contract, on a real server."""

from collections.abc import AsyncIterator

import pytest
from tests.brokers import Broker
from tests.conformance.suites.transport import TransportConformance, TransportScene
from tests.conformance.transports import BrokerScene, scene_of


@pytest.fixture
async def transport_scene(kafka_broker: Broker) -> AsyncIterator[BrokerScene]:
    async with scene_of(kafka_broker) as scene:
        yield scene


class TestKafkaTransport(TransportConformance):
    """Everything that a transport must do."""

    async def test_each_ticket_goes_to_one_of_several(self, transport_scene: TransportScene) -> None:
        assert isinstance(transport_scene, BrokerScene)
        if transport_scene.is_stand_in:
            pytest.skip("the cluster that stands in can't lead a group of several")
        await super().test_each_ticket_goes_to_one_of_several(transport_scene)
