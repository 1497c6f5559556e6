"""Names of queues at a broker, and the format of a message: the execution's id as 32 hex digits."""

from collections.abc import Iterable
from uuid import UUID

from foliot.model.broker import name_at_broker
from foliot.model.policy import Priority
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

GROUP = "foliot-workers"
"""The consumer group of all workers, at brokers that have groups. Each message goes to one of them."""
_URGENCY = {priority: number for number, priority in enumerate(Priority)}


def in_order(broker_queues: Iterable[BrokerQueue]) -> list[BrokerQueue]:
    """Sort queues: the most urgent priority first, otherwise in the given order."""
    return sorted(broker_queues, key=lambda broker_queue: _URGENCY[broker_queue.priority])


def by_urgency(deliveries: Iterable[ExecutionDelivery]) -> list[ExecutionDelivery]:
    """Sort received messages: the most urgent priority first."""
    return sorted(deliveries, key=lambda each: _URGENCY[each.message.priority])


def place_of(broker_queue: BrokerQueue) -> str:
    """Return the name of the queue, topic or stream at the broker."""
    return name_at_broker(f"foliot.{broker_queue.queue}.{broker_queue.priority}")


def written(message: ExecutionMessage) -> bytes:
    return message.execution_id.hex.encode()


def read(broker_queue: BrokerQueue, body: bytes) -> ExecutionMessage | None:
    """Parse a message. None: it is not in this format."""
    try:
        return ExecutionMessage(UUID(hex=body.decode()), broker_queue.queue, broker_queue.priority)
    except ValueError:
        return None
