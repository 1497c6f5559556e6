"""Leases by the database and a second witness: etcd or Redis.

Whoever leads heartbeats the database row and, beside it, keeps a key at the witness (`witness.py`). The row
is where leadership is; the key tells followers sooner that a leader is gone. A row may be taken

    when its heartbeat is older than the TTL: by anybody, whatever the witness says
    when it is older than `quiet_s`:          by who has got its key, so that the leader is silent there too

`quiet_s` lies between the end of the leader's own trust in its lease and the TTL. So nobody takes a row from
a leader that may still act on it, and a row whose heartbeat goes on is never taken: a witness that goes away,
loses its keys or comes back changes no leader. The database answers first in everything here; an instance
that can't reach it neither campaigns nor keeps its key.
"""

from foliot.lease.database import answer_of
from foliot.lease.leadership import MARGIN
from foliot.lease.protocol import LeaseReply
from foliot.lease.witness import Witness
from foliot.model.errors import FencedError
from foliot.model.lease import Lease, Shard
from foliot.store.protocol import LeaseStore
from foliot.timing.clock import ClusterClock

QUIET = 1 - 0.9 * MARGIN
"""The part of the TTL after which two silences are enough. A leader trusts its lease for 1 − MARGIN of it,
from a moment before the database's count begins; the rest is for clocks that run at different rates."""


class WitnessedLeases:
    """The provider for FOLIOT_LEASE_PROVIDER=etcd and =redis."""

    def __init__(
        self, store: LeaseStore, witness: Witness, clock: ClusterClock, instance_id: str, ttl_s: float
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
                # A key is only asked for when it could be used: a leader that does well is left in peace.
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
            # Looks again, with the row locked: the leader may only have been late.
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
