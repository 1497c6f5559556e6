"""Lease provider that uses the database and a second witness: etcd or Redis.

A leader sends heartbeats to the database row, and also holds a key at the witness (`second_witness.py`). The
row decides who leads. The key shows followers sooner that a leader is gone. A row may be taken

    if its heartbeat is older than the TTL:  by any instance, without asking the witness
    if it is older than `quiet_s`:           by who got its key, so the leader is silent there too

`quiet_s` lies between the end of the leader's trust in its own lease and the TTL. So nobody takes a row from
a leader that may still act on it. A row with fresh heartbeats is never taken: a witness that goes away, loses
its keys or comes back changes no leader. The database is always asked first. An instance that can't reach it
neither campaigns nor keeps its key.
"""

from foliot.model.errors import FencedError
from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.database_lease import answer_of
from foliot.scheduler.leases.leadership import MARGIN
from foliot.scheduler.leases.lease_provider import LeaseReply
from foliot.scheduler.leases.leases_sql import Leases
from foliot.scheduler.leases.second_witness import Witness
from foliot.timing.clock import ClusterClock

QUIET = 1 - 0.9 * MARGIN
"""The part of the TTL after which silence in both places is enough to take a row. A leader trusts its lease
for 1 − MARGIN of the TTL, from before the database's count begins. The rest covers clocks that run at
different rates."""


class WitnessedLeases:
    """Provider for FOLIOT_LEASE_PROVIDER=etcd and =redis."""

    def __init__(
        self, store: Leases, witness: Witness, clock: ClusterClock, instance_id: str, ttl_s: float
    ) -> None:
        self._store = store
        self._witness = witness
        self._clock = clock
        self._instance_id = instance_id
        self._ttl_s = ttl_s
        self._quiet_s = ttl_s * QUIET

    async def acquire(self, shard: Shard) -> LeaseReply:
        sent_at = self._clock.monotonic()
        standing = await self._store.take(shard, self._instance_id, self._ttl_s)
        answer = answer_of(standing, self._ttl_s)
        if answer.result == "held":
            if standing.silent_s <= self._quiet_s:
                # Ask for the key only when it could be used, and so not while the leader is healthy.
                return answer_of(standing, self._quiet_s if self._witness.is_answering else self._ttl_s)
            if not await self._witness.acquire(shard):
                return answer
            answer = await self._take_quiet(shard)
        if answer.lease is not None:
            self._witness.keep(shard, sent_at)
        return answer

    async def _take_quiet(self, shard: Shard) -> LeaseReply:
        lease = None
        try:
            # Checks again with the row locked: the leader may only have been late.
            standing = await self._store.take(shard, self._instance_id, self._quiet_s)
            lease = standing.lease
            return answer_of(standing, self._quiet_s)
        finally:
            if lease is None:
                await self._witness.give_up(shard)

    async def renew(self, lease: Lease) -> LeaseReply:
        sent_at = self._clock.monotonic()
        try:
            standing = await self._store.renew(lease)
        except FencedError:
            await self._witness.give_up(lease.shard)
            raise
        if standing.lease is None:
            await self._witness.give_up(lease.shard)
            return LeaseReply(None, standing.store_now, "held")
        self._witness.keep(lease.shard, sent_at)
        return LeaseReply(standing.lease, standing.store_now, "renewed")

    async def release(self, lease: Lease) -> None:
        await self._store.release(lease)
        self._witness.drop(lease.shard)
