"""The protocol of transports, and the messages that they deliver."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.policy import Priority
from foliot.model.trace import fire_span

SETTING = "FOLIOT_TRANSPORT"
"""The setting with the addresses of the brokers that deliver messages to workers."""


class BrokerQueue(NamedTuple):
    """A queue of messages at the broker. There is one per queue and priority, shared by all hosts."""

    queue: str
    priority: Priority


class ExecutionMessage(NamedTuple):
    """The id of an execution that may be claimed, and the queue it waits in."""

    execution_id: UUID
    queue: str
    priority: Priority
    trace_context: str | None = None
    """The trace that the execution continues. None: it has its own trace."""

    @property
    def traceparent(self) -> str:
        """The trace context to send with the message, for brokers with message headers."""
        return str(fire_span(self.execution_id, self.trace_context))

    @property
    def broker_queue(self) -> BrokerQueue:
        return BrokerQueue(self.queue, self.priority)


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionDelivery:
    """A message and its `receipt`, which the transport needs to acknowledge it."""

    message: ExecutionMessage
    receipt: Any = None


class Transport(Protocol):
    """A connection to a broker. All methods may raise BrokerUnreachableError; the next call reconnects."""

    name: str

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        """Send messages and wait until the broker has confirmed all of them. Without messages, check the
        connection."""
        ...

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        """Return up to `limit` messages, the most urgent first. Waits up to `wait_s` seconds for the first.

        A received message is delivered to nobody else until the receiver disconnects, gives it back, or does
        not acknowledge it for too long.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Acknowledge messages: they are not delivered again."""
        ...

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Give messages back: the broker delivers them to another receiver now."""
        ...

    async def close(self) -> None: ...
