"""A scene of a broker and its transports, for the transport tests."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from tests.brokers import Broker, GivenKafka, MockKafka, RabbitBroker
from tests.conformance.suites.transport import ABANDONED_S

from foliot.model.policy import Priority
from foliot.timing.clock import SystemClock
from foliot.transport.broker_names import place_of
from foliot.transport.intervals import TransportIntervals
from foliot.transport.open_transport import open_transport
from foliot.transport.transport_protocol import BrokerQueue, Transport


def wait_until_kept(broker: Broker, *places: str) -> None:
    """Wait until RabbitMQ has stored its list of quorum queues, half a second after their creation.

    If it is killed before, the queue exists but is unusable. That problem is not tested here.
    """
    if not isinstance(broker, RabbitBroker):
        return
    deadline = time.monotonic() + 30
    wanted = [place.encode() for place in places]
    while time.monotonic() < deadline:
        kept = b"".join(each.read_bytes() for each in broker._program.folder.rglob("names.dets"))
        if all(place in kept for place in wanted):
            return
        time.sleep(0.05)
    raise RuntimeError("RabbitMQ has not written down its queues")


class BrokerScene:
    def __init__(self, broker: Broker) -> None:
        self.queue = f"queue-{uuid4().hex[:8]}.é"
        self._broker = broker
        self._opened: list[Transport] = []

    def open(self, *, abandoned_s: float = ABANDONED_S) -> Transport:
        pace = TransportIntervals(abandoned_s=abandoned_s)
        transport = open_transport(self._broker.url, SystemClock(), pace)
        self._opened.append(transport)
        return transport

    @property
    def is_stand_in(self) -> bool:
        return isinstance(self._broker, MockKafka)

    def stop_broker(self) -> None:
        if isinstance(self._broker, GivenKafka | MockKafka):
            pytest.skip("neither a Kafka that somebody else runs nor a mock can be stopped and keep anything")
        wait_until_kept(self._broker, *(place_of(BrokerQueue(self.queue, each)) for each in Priority))
        self._broker.stop()

    def start_broker(self) -> None:
        self._broker.start()

    async def close(self) -> None:
        for transport in self._opened:
            await transport.close()


@asynccontextmanager
async def scene_of(broker: Broker) -> AsyncIterator[BrokerScene]:
    scene = BrokerScene(broker)
    try:
        yield scene
    finally:
        await scene.close()
