"""The transport over NATS against its contract, on a real server."""

from collections.abc import AsyncIterator

import pytest
from tests.brokers import Broker
from tests.conformance.suites.transport import TransportConformance
from tests.conformance.transports import BrokerScene, scene_of


@pytest.fixture
async def transport_scene(nats_broker: Broker) -> AsyncIterator[BrokerScene]:
    async with scene_of(nats_broker) as scene:
        yield scene


class TestNATSTransport(TransportConformance):
    """Everything that a transport must do."""
