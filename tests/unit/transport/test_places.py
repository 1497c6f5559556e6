"""Names of queues at brokers, and messages as they are written there."""

from uuid import uuid4

import pytest

from foliot.brokers.broker_calls import reaching
from foliot.model.errors import BrokerUnreachableError
from foliot.model.policy import Priority
from foliot.transport.broker_names import in_order, place_of, read, written
from foliot.transport.transport_protocol import BrokerQueue, ExecutionMessage


def test_a_ticket_can_be_read_again() -> None:
    message = ExecutionMessage(uuid4(), "default", Priority.LOW)
    assert read(message.broker_queue, written(message)) == message


@pytest.mark.parametrize("body", [b"", b"no id", b"\xff\xfe", b"0" * 31])
def test_what_is_no_ticket_is_told_apart(body: bytes) -> None:
    assert read(BrokerQueue("default", Priority.LOW), body) is None


def test_a_lane_has_a_name_that_every_broker_takes() -> None:
    assert place_of(BrokerQueue("reports", Priority.HIGH)) == "foliot.reports.high"
    assert place_of(BrokerQueue("über uns", Priority.HIGH)).isascii()


def test_queues_are_asked_in_order_of_their_urgency() -> None:
    broker_queues = [BrokerQueue(queue, priority) for priority in reversed(Priority) for queue in ("b", "a")]
    assert in_order(broker_queues) == [
        BrokerQueue(queue, priority) for priority in Priority for queue in ("b", "a")
    ]


async def test_a_failure_is_told_without_the_password() -> None:
    address = "amqp://user:s%40crets@broker/"
    with pytest.raises(BrokerUnreachableError) as raised:
        async with reaching(address, (LookupError,)):
            raise LookupError("refused s@crets and s%40crets")
    assert "crets" not in str(raised.value)
    assert "amqp://broker/" in str(raised.value)


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    import asyncio

    with pytest.raises(BrokerUnreachableError):
        async with reaching("nats://broker:4222", (), within_s=0.01):
            await asyncio.Event().wait()
