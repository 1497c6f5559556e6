"""What a lease provider does. Providers only decide who leads; the fence is always in the database."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from foliot.model.errors import FoliotError
from foliot.model.lease import Lease, Shard


class LeaseReply(NamedTuple):
    """What a provider says about a lease."""

    lease: Lease | None
    """Ours, or None."""
    store_now: datetime
    """The database's clock, read on the way."""
    result: str
    """`acquired`, `renewed`, `held` by another, or `contended`: another was quicker."""
    free_in_s: float | None = None
    """When to ask again, if the holder stays as silent as it is; None: nothing to wait for."""


class LeaseProvider(Protocol):
    async def acquire(self, shard: Shard) -> LeaseReply:
        """Become the leader, if nobody is."""
        ...

    async def renew(self, lease: Lease) -> LeaseReply:
        """Stay the leader."""
        ...

    async def release(self, lease: Lease) -> None:
        """Stop being the leader, so that another can follow at once."""
        ...


class ProviderUnreachableError(FoliotError):
    """etcd or Redis does not answer, or not with anything of use."""


class ExternalLeases(Protocol):
    """Keys with an owner, kept outside of the database. One object is one owner: ours.

    Everything may raise ProviderUnreachableError, and then may have happened or not.
    """

    name: str
    address: str
    """For people: without user and password."""

    async def acquire(self, key: str) -> bool:
        """Own the key, if nobody else does; what is ours already stays ours for a whole TTL."""
        ...

    async def extend(self, keys: Collection[str]) -> frozenset[str]:
        """Own these for another TTL; returns those that were still ours, the others are left as they are."""
        ...

    async def give_up(self, key: str) -> None:
        """Let others have the key at once; nothing happens to one that is not ours."""
        ...

    async def close(self) -> None: ...
