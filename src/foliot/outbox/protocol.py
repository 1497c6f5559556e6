"""What a publisher does: the broker's side of the relay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from foliot.model.errors import FoliotError
from foliot.store.outbox_list import OutboxMessage
from foliot.transport.protocol import BrokerUnreachableError


@dataclass(frozen=True, slots=True)
class RelayTerm:
    """From the moment a relay takes over until another does."""

    outbox: str
    """Tells this outbox from others that are shipped to the same broker."""
    epoch: int


SETTING = "FOLIOT_RELAY"
"""What names the broker that events are shipped to."""


class TermOverError(FoliotError):
    """The broker has seen a later term, and takes nothing of this one."""

    def __init__(self, broker: str, epoch: int, seen: int) -> None:
        super().__init__(f"{broker} has seen epoch {seen} and takes nothing of {epoch}")
        self.epoch = epoch
        self.seen = seen


class BrokerRefusedError(BrokerUnreachableError):
    """The broker is there, and does not take a message: that one, or anything of its topic."""

    def __init__(self, reason: str, *, is_topic: bool, topic: str | None = None) -> None:
        super().__init__(reason)
        self.is_topic = is_topic
        self.topic = topic
        """Its name at the broker, if the refusal says so; else one of those that were sent was refused."""


class Publisher(Protocol):
    """A connection to a broker, made by `begin`. Methods raise BrokerUnreachableError, of
    which RefusedError is one; then begin again."""

    name: str

    async def begin(self, term: RelayTerm) -> None:
        """Connect, for this term: from now on the broker refuses what an earlier one still sends, where it
        has the means to. Raises TermOverError."""
        ...

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        """Hand these to the broker; how many from the first on it has confirmed. Raises TermOverError.

        A message is sent when the one before it of the same aggregate is confirmed, or together with it as a
        whole that the broker takes in order or not at all. Before each sending `is_trusted` is asked: when it
        says no, nothing more is sent.
        """
        ...

    async def close(self) -> None: ...
