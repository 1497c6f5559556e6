"""The protocol of transports, and the tickets they carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.policy import Priority
from foliot.model.trace import fire_span

SETTING = "FOLIOT_TRANSPORT"
"""The setting with the addresses of the brokers that carry tickets to workers."""


class BrokerQueue(NamedTuple):
    """A queue of tickets at the broker. There is one per queue and priority, shared by all hosts."""

    queue: str
    priority: Priority


class Ticket(NamedTuple):
    """The id of an execution that may be claimed, and the queue it waits in."""

    execution_id: UUID
    queue: str
    priority: Priority
    trace_context: str | None = None
    """The trace that the execution continues. None: it has its own trace."""

    @property
    def traceparent(self) -> str:
        """The trace context for the message that carries the ticket, for brokers with message headers."""
        return str(fire_span(self.execution_id, self.trace_context))

    @property
    def lane(self) -> BrokerQueue:
        return BrokerQueue(self.queue, self.priority)


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedTicket:
    """A ticket and its `receipt`, which the transport needs to acknowledge it."""

    ticket: Ticket
    receipt: Any = None


class Transport(Protocol):
    """A connection to a broker. All methods may raise BrokerUnreachableError; the next call reconnects."""

    name: str

    async def publish(self, tickets: Sequence[Ticket]) -> None:
        """Send tickets and wait until the broker has confirmed all of them. Without tickets, check the
        connection."""
        ...

    async def receive(
        self, lanes: Sequence[BrokerQueue], *, most: int, wait_s: float
    ) -> list[ReceivedTicket]:
        """Return up to `most` tickets, the most urgent first. Waits up to `wait_s` seconds for the first one.

        A received ticket is delivered to nobody else until the receiver disconnects, gives it back, or does
        not acknowledge it for too long.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """Acknowledge tickets: they are not delivered again."""
        ...

    async def give_back(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """Give tickets back: the broker delivers them to another receiver now."""
        ...

    async def close(self) -> None: ...
