"""The transport over Redis against its contract, on a real server."""

from collections.abc import AsyncIterator

import pytest
from tests.brokers import Broker
from tests.conformance.suites.transport import TransportConformance
from tests.conformance.transports import BrokerScene, scene_of


@pytest.fixture
async def transport_scene(redis_broker: Broker) -> AsyncIterator[BrokerScene]:
    async with scene_of(redis_broker) as scene:
        yield scene


class TestRedisTransport(TransportConformance):
    """Everything that a transport must do."""
