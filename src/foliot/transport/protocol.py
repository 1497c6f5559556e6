"""What a transport does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.errors import FoliotError
from foliot.model.policy import Priority
from foliot.model.trace import fire_span

SETTING = "FOLIOT_TRANSPORT"
"""What names the brokers that carry executions to workers."""


class BrokerUnreachableError(FoliotError):
    """The broker can't be reached, or went away in the middle."""


class BrokerQueue(NamedTuple):
    """Where tickets wait: one place at the broker for each queue and priority, shared by all hosts."""

    queue: str
    priority: Priority


class Ticket(NamedTuple):
    """An execution that may be claimed."""

    execution_id: UUID
    queue: str
    priority: Priority
    trace_context: str | None = None
    """What the trace of the execution continues; None: it has one of its own."""

    @property
    def traceparent(self) -> str:
        """For the message that carries it, where a broker has a place for such."""
        return str(fire_span(self.execution_id, self.trace_context))

    @property
    def lane(self) -> BrokerQueue:
        return BrokerQueue(self.queue, self.priority)


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedTicket:
    """A ticket as it came; `receipt` is the transport's own, and says what to acknowledge."""

    ticket: Ticket
    receipt: Any = None


class Transport(Protocol):
    """A connection to a broker. All methods raise BrokerUnreachableError; the next call connects anew."""

    name: str

    async def publish(self, tickets: Sequence[Ticket]) -> None:
        """Hand these to the broker; it has confirmed all of them when this returns. None: is it there?"""
        ...

    async def receive(
        self, lanes: Sequence[BrokerQueue], *, most: int, wait_s: float
    ) -> list[ReceivedTicket]:
        """Up to `most` tickets of these lanes, the most urgent priority first; waits for the first of them.

        What was received and not acknowledged counts against nobody else: the broker keeps it for this
        receiver until it acknowledges, goes away, or for too long says nothing.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """These have been seen to: they are not delivered again."""
        ...

    async def give_back(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """These have not been seen to: another may have them now."""
        ...

    async def close(self) -> None: ...
