"""Leader election of relays, so that one is active: the leadership state machine on the relay's row."""

from foliot.model.delivery_events import OutboxMeasured, RelayLost, RelayReleased, RelayTookOver
from foliot.model.event import DomainEvent, Observer
from foliot.model.instance_events import ClockObserved, LeaderElected, LeaseLost, LeaseReleased
from foliot.model.lease import Lease, Shard
from foliot.outbox.relays_sql import RelayLeaseState, Relays
from foliot.scheduler.leases.lease_provider import LeaseReply

WHOLE = Shard(0, 1)
"""The only shard: an outbox is not sharded, since its offsets come from one row."""


class RelayLeases:
    """A lease provider. Every heartbeat also reports how many events wait, even while the broker hangs."""

    def __init__(self, store: Relays, instance_id: str, ttl_s: float, observer: Observer) -> None:
        self._store = store
        self._instance_id = instance_id
        self._ttl_s = ttl_s
        self._observer = observer

    async def acquire(self, shard: Shard) -> LeaseReply:
        standing = await self._store.take(self._instance_id, self._ttl_s)
        if not standing.is_ours:
            return LeaseReply(None, standing.store_now, "contended" if standing.is_contended else "held")
        return LeaseReply(self._lease(shard, standing), standing.store_now, "acquired")

    async def renew(self, lease: Lease) -> LeaseReply:
        standing = await self._store.renew(lease.instance_id, lease.epoch)
        if not standing.is_ours:
            return LeaseReply(None, standing.store_now, "held")
        return LeaseReply(self._lease(lease.shard, standing), standing.store_now, "renewed")

    async def release(self, lease: Lease) -> None:
        await self._store.release(lease.instance_id, lease.epoch)

    def _lease(self, shard: Shard, standing: RelayLeaseState) -> Lease:
        self._observer.notify(OutboxMeasured(standing.lag))
        return Lease(shard, standing.epoch, self._instance_id)


class RelayObserver:
    """Translates the events of leadership into those of the relay."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def notify(self, event: DomainEvent) -> None:
        match event:
            case LeaderElected(epoch=epoch, instance_id=instance_id):
                self._observer.notify(RelayTookOver(epoch, instance_id))
            case LeaseLost(epoch=epoch, reason=reason):
                self._observer.notify(RelayLost(epoch, reason))
            case LeaseReleased(epoch=epoch):
                self._observer.notify(RelayReleased(epoch))
            case ClockObserved():
                self._observer.notify(event)
