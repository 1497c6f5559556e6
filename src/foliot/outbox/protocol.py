"""What a publisher does: the broker's side of the relay."""

from collections.abc import Callable, Sequence
from typing import Protocol

from foliot.store.outbox_list import OutboxMessage


class Publisher(Protocol):
    """A connection to a broker. Methods raise BrokerUnreachableError; the next call connects anew."""

    name: str

    async def begin(self, epoch: int) -> None:
        """A relay's term has begun: from now on the broker refuses what an earlier one still sends, where it
        has the means to."""
        ...

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        """Hand these to the broker, in this order; how many from the first on it has confirmed.

        Two messages of one aggregate are never under way at once, so their order holds whatever is refused
        or lost. Before each one `is_trusted` is asked: when it says no, nothing more is sent.
        """
        ...

    async def close(self) -> None: ...
