"""Interface of lease providers. They only decide who leads; writes are always fenced by the database."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from foliot.model.errors import FoliotError
from foliot.model.lease import Lease, Shard


class LeaseReply(NamedTuple):
    """A provider's reply about a lease."""

    lease: Lease | None
    """Our lease; None: we don't have it."""
    store_now: datetime
    """The database's clock, read with the same call."""
    result: str
    """`acquired`, `renewed`, `held` by another, or `contended`: another was quicker."""
    free_in_s: float | None = None
    """Seconds until the lease is free if its holder sends no heartbeat; None: nothing to wait for."""


class LeaseProvider(Protocol):
    async def acquire(self, shard: Shard) -> LeaseReply:
        """Become the leader if there is none."""
        ...

    async def renew(self, lease: Lease) -> LeaseReply:
        """Stay the leader."""
        ...

    async def release(self, lease: Lease) -> None:
        """Stop being the leader, so that another instance can take over at once."""
        ...


class ProviderUnreachableError(FoliotError):
    """etcd or Redis does not answer, or gives no usable answer."""


class ExternalLeases(Protocol):
    """Keys with an owner, stored outside of the database. Each object acts for one owner: us.

    Every method may raise ProviderUnreachableError. Then the call may have been executed or not.
    """

    name: str
    address: str
    """For display: without user and password."""

    async def acquire(self, key: str) -> bool:
        """Take the key if nobody else owns it. A key that is ours already is extended by a full TTL."""
        ...

    async def extend(self, keys: Collection[str]) -> frozenset[str]:
        """Extend these keys by a full TTL if they are still ours; return those that are."""
        ...

    async def give_up(self, key: str) -> None:
        """Delete the key if it is ours, so that others can take it at once."""
        ...

    async def close(self) -> None: ...
