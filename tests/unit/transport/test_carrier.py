"""When a broker counts as away, who is told, and what is shown of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from foliot.model.delivery_events import TransportLost, TransportRecovered
from foliot.model.errors import BrokerUnreachableError, SettingError
from foliot.model.event import Observers
from foliot.model.instance_events import RedisFailed
from foliot.model.policy import Priority
from foliot.testing.app import Recorder
from foliot.timing.clock import VirtualClock
from foliot.transport.intervals import TransportIntervals
from foliot.transport.monitored_transport import MonitoredTransport, describe_transports, open_transports
from foliot.transport.open_transport import open_transport
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

PACE = TransportIntervals(patience_s=5.0)
ADDRESS = "amqp://user:secret@broker:5672/"


class Fickle:
    """A broker that is there or not, as it is told."""

    name = "fickle"

    def __init__(self) -> None:
        self.is_there = True

    def _answer(self) -> None:
        if not self.is_there:
            raise BrokerUnreachableError("no answer")

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        self._answer()

    async def receive(
        self,
        broker_queues: Sequence[BrokerQueue],
        *,
        limit: int,
        wait_s: float,
    ) -> list[ExecutionDelivery]:
        self._answer()
        return []

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        self._answer()

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        self._answer()

    async def close(self) -> None: ...


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def broker() -> Fickle:
    return Fickle()


@pytest.fixture
def transport(broker: Fickle, clock: VirtualClock, recorder: Recorder) -> MonitoredTransport:
    return MonitoredTransport(broker, ADDRESS, clock, Observers([recorder]), PACE)


async def fail(transport: MonitoredTransport) -> None:
    with pytest.raises(BrokerUnreachableError):
        await transport.publish([ExecutionMessage(uuid4(), "default", Priority.HIGH)])


async def test_a_broker_is_away_once_it_has_been_silent_for_longer_than_the_patience(
    transport: MonitoredTransport, broker: Fickle, clock: VirtualClock, recorder: Recorder
) -> None:
    broker.is_there = False
    await fail(transport)
    clock.advance(4.9)
    await fail(transport)
    assert (transport.is_failing, transport.is_away, recorder.events) == (True, False, [])
    clock.advance(0.1)
    await fail(transport)
    await fail(transport)
    assert transport.is_away
    assert transport.since_ts == clock.now()
    assert recorder.events == [TransportLost("rabbitmq", "amqp://broker:5672/", "no answer")]


async def test_a_single_answer_brings_it_back(
    transport: MonitoredTransport, broker: Fickle, clock: VirtualClock, recorder: Recorder
) -> None:
    broker.is_there = False
    await fail(transport)
    clock.advance(60)
    await fail(transport)
    broker.is_there = True
    await transport.receive([], limit=1, wait_s=1)
    assert (transport.is_failing, transport.is_away) == (False, False)
    assert recorder.events[1:] == [TransportRecovered("rabbitmq", "amqp://broker:5672/", 60.0)]


async def test_every_call_of_redis_that_fails_is_told_to_those_who_count(
    broker: Fickle, clock: VirtualClock, recorder: Recorder
) -> None:
    transport = MonitoredTransport(
        broker, "redis://:secret@broker:6379/0", clock, Observers([recorder]), PACE
    )
    broker.is_there = False
    for _ in range(2):
        await fail(transport)
    for call in (
        transport.receive([], limit=1, wait_s=1),
        transport.acknowledge([]),
        transport.give_back([]),
    ):
        with pytest.raises(BrokerUnreachableError):
            await call
    assert recorder.events == [RedisFailed("transport", "no answer")] * 5


async def test_a_stumble_is_told_to_nobody(
    transport: MonitoredTransport, broker: Fickle, clock: VirtualClock, recorder: Recorder
) -> None:
    for _ in range(3):
        broker.is_there = False
        await fail(transport)
        clock.advance(4)
        broker.is_there = True
        await transport.publish([])
        clock.advance(4)
    assert recorder.events == []


async def test_what_is_shown_of_it_holds_no_password(transport: MonitoredTransport, broker: Fickle) -> None:
    assert describe_transports({Priority.HIGH: transport}) == {
        "high": {"kind": "rabbitmq", "address": "amqp://broker:5672/", "state": "up", "since_ts": None},
        "medium": {"kind": "database", "address": None, "state": "up", "since_ts": None},
        "low": {"kind": "database", "address": None, "state": "up", "since_ts": None},
    }
    broker.is_there = False
    assert describe_transports({}) is None


async def test_priorities_with_the_same_address_share_one(clock: VirtualClock) -> None:
    setting = "high=redis://one:1/0;medium=redis://one:1/0;low=redis://two:1/0"
    transports = open_transports(setting, clock, Observers(), PACE)
    assert transports[Priority.HIGH] is transports[Priority.MEDIUM]
    assert transports[Priority.LOW] is not transports[Priority.HIGH]
    for each in transports.values():
        await each.close()
    assert open_transports("database", clock, Observers(), PACE) == {}


def test_a_library_that_is_missing_is_named_with_its_extra(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "aio_pika", None)
    monkeypatch.delitem(sys.modules, "foliot.transport.rabbitmq", raising=False)
    with pytest.raises(SettingError, match=r'pip install "foliot\[rabbitmq\]"') as raised:
        open_transport(ADDRESS, clock, PACE)
    assert "secret" not in str(raised.value)
