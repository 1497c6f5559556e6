"""What a lease provider does. Providers only decide who leads; the fence is always in the database."""

from datetime import datetime
from typing import NamedTuple, Protocol

from foliot.model.lease import Lease, Shard


class Answer(NamedTuple):
    """What a provider says about a lease."""

    lease: Lease | None
    """Ours, or None."""
    store_now: datetime
    """The database's clock, read on the way."""
    result: str
    """`acquired`, `renewed`, `held` by another, or `contended`: another was quicker."""


class LeaseProvider(Protocol):
    async def acquire(self, shard: Shard) -> Answer:
        """Become the leader, if nobody is."""
        ...

    async def renew(self, lease: Lease) -> Answer:
        """Stay the leader."""
        ...

    async def release(self, lease: Lease) -> None:
        """Stop being the leader, so that another can follow at once."""
        ...
