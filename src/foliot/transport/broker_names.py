"""Names of lanes at a broker, and the format of a ticket: the execution's id as 32 hex digits."""

from collections.abc import Iterable
from uuid import UUID

from foliot.model.broker import name_at_broker
from foliot.model.policy import Priority
from foliot.transport.transport_protocol import BrokerQueue, ReceivedTicket, Ticket

GROUP = "foliot-workers"
"""The consumer group of all workers, at brokers that have groups. Each ticket goes to one of them."""
_URGENCY = {priority: number for number, priority in enumerate(Priority)}


def in_order(lanes: Iterable[BrokerQueue]) -> list[BrokerQueue]:
    """Sort lanes: the most urgent priority first, otherwise in the given order."""
    return sorted(lanes, key=lambda lane: _URGENCY[lane.priority])


def by_urgency(deliveries: Iterable[ReceivedTicket]) -> list[ReceivedTicket]:
    """Sort received tickets: the most urgent priority first."""
    return sorted(deliveries, key=lambda each: _URGENCY[each.ticket.priority])


def place_of(lane: BrokerQueue) -> str:
    """Return the name of a lane's queue, topic or stream at the broker."""
    return name_at_broker(f"foliot.{lane.queue}.{lane.priority}")


def written(ticket: Ticket) -> bytes:
    return ticket.execution_id.hex.encode()


def read(lane: BrokerQueue, body: bytes) -> Ticket | None:
    """Parse a ticket. None: the message is not a ticket."""
    try:
        return Ticket(UUID(hex=body.decode()), lane.queue, lane.priority)
    except ValueError:
        return None
