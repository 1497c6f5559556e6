"""Lease provider that uses only the database."""

from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.lease_provider import LeaseReply
from foliot.scheduler.leases.leases_sql import Leases, LeaseState

MIN_WAIT_S = 0.01
"""Added to waiting times, since a row is stale only when it is older than the TTL, not when as old."""


class DatabaseLeases:
    def __init__(self, store: Leases, instance_id: str, ttl_s: float) -> None:
        self._store = store
        self._instance_id = instance_id
        self._ttl_s = ttl_s

    async def acquire(self, shard: Shard) -> LeaseReply:
        return answer_of(await self._store.take(shard, self._instance_id, self._ttl_s), self._ttl_s)

    async def renew(self, lease: Lease) -> LeaseReply:
        standing = await self._store.renew(lease)
        return LeaseReply(standing.lease, standing.store_now, "renewed" if standing.lease else "held")

    async def release(self, lease: Lease) -> None:
        await self._store.release(lease)


def answer_of(standing: LeaseState, ttl_s: float) -> LeaseReply:
    """Return the reply to an attempt to take a row that is free after `ttl_s` without a heartbeat."""
    if standing.lease is not None:
        return LeaseReply(standing.lease, standing.store_now, "acquired")
    if standing.is_contended:
        return LeaseReply(None, standing.store_now, "contended")
    free_in_s = max(ttl_s - standing.silent_s, 0.0) + MIN_WAIT_S
    return LeaseReply(None, standing.store_now, "held", free_in_s)
