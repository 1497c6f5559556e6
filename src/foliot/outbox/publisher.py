"""The protocol of publishers: the broker's side of the relay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from foliot.model.errors import BrokerUnreachableError, FoliotError
from foliot.queries.outbox_list import OutboxMessage


@dataclass(frozen=True, slots=True)
class RelayTerm:
    """The period in which one relay is active."""

    outbox: str
    """Id of this outbox, which distinguishes it from others that publish to the same broker."""
    epoch: int


SETTING = "FOLIOT_RELAY"
"""The setting with the address of the broker that events are published to."""


class TermOverError(FoliotError):
    """The broker has seen a later term and refuses messages of this one."""

    def __init__(self, broker: str, epoch: int, seen: int) -> None:
        super().__init__(f"{broker} has seen epoch {seen} and takes nothing of {epoch}")
        self.epoch = epoch
        self.seen = seen


class BrokerRefusedError(BrokerUnreachableError):
    """The broker can be reached but refuses a message, or all messages of a topic."""

    def __init__(self, reason: str, *, is_topic: bool, topic: str | None = None) -> None:
        super().__init__(reason)
        self.is_topic = is_topic
        self.topic = topic
        """Name of the refused topic at the broker. None: unknown which of the sent topics was refused."""


class Publisher(Protocol):
    """A connection to a broker, made by `begin`. Methods raise BrokerUnreachableError (BrokerRefusedError is
    one); then call `begin` again."""

    name: str

    async def begin(self, term: RelayTerm) -> None:
        """Connect for this term. The broker then refuses messages of earlier terms, if it can. Raises
        TermOverError."""
        ...

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        """Publish messages; return how many, from the first on, are confirmed. Raises TermOverError.

        A message is sent only when the previous one of its aggregate is confirmed, or together with it in a
        batch that the broker accepts completely and in order, or not at all. `is_trusted` is called before
        each send. When it returns False, nothing more is sent.
        """
        ...

    async def close(self) -> None: ...
