"""Where a lane is at a broker, and how a ticket is written there: the execution's id, as 32 hex digits."""

from collections.abc import Iterable
from uuid import UUID

from foliot.model.broker import name_at_broker
from foliot.model.policy import Priority
from foliot.transport.protocol import BrokerQueue, ReceivedTicket, Ticket

GROUP = "foliot-workers"
"""The one group that all workers belong to, at brokers that have groups: each ticket goes to one of them."""
_URGENCY = {priority: number for number, priority in enumerate(Priority)}


def in_order(lanes: Iterable[BrokerQueue]) -> list[BrokerQueue]:
    """The most urgent priority first; within one as they were given."""
    return sorted(lanes, key=lambda lane: _URGENCY[lane.priority])


def by_urgency(deliveries: Iterable[ReceivedTicket]) -> list[ReceivedTicket]:
    """Sort received tickets: the most urgent priority first."""
    return sorted(deliveries, key=lambda each: _URGENCY[each.ticket.priority])


def place_of(lane: BrokerQueue) -> str:
    """The name of its queue, topic or stream."""
    return name_at_broker(f"foliot.{lane.queue}.{lane.priority}")


def written(ticket: Ticket) -> bytes:
    return ticket.execution_id.hex.encode()


def read(lane: BrokerQueue, body: bytes) -> Ticket | None:
    """None: it is no ticket of ours, and nobody can do anything with it."""
    try:
        return Ticket(UUID(hex=body.decode()), lane.queue, lane.priority)
    except ValueError:
        return None
