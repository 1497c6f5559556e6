"""Leases by the database alone."""

from foliot.lease.protocol import Answer
from foliot.model.lease import Lease, Shard
from foliot.store.protocol import LeaseStore


class DatabaseLeases:
    def __init__(self, store: LeaseStore, instance_id: str, ttl_s: float) -> None:
        self._store = store
        self._instance_id = instance_id
        self._ttl_s = ttl_s

    async def acquire(self, shard: Shard) -> Answer:
        standing = await self._store.take(shard, self._instance_id, self._ttl_s)
        if standing.lease is not None:
            return Answer(standing.lease, standing.store_now, "acquired")
        return Answer(None, standing.store_now, "contended" if standing.is_contended else "held")

    async def renew(self, lease: Lease) -> Answer:
        standing = await self._store.renew(lease)
        return Answer(standing.lease, standing.store_now, "renewed" if standing.lease else "held")

    async def release(self, lease: Lease) -> None:
        await self._store.release(lease)
