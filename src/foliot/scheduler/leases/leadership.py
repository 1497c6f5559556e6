"""State machine of a follower or leader: one shard on one instance, with any provider."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foliot.model.errors import FencedError
from foliot.model.event import Observer
from foliot.model.instance_events import (
    ClockObserved,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseReleased,
)
from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.lease_provider import LeaseProvider
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

MARGIN = 1 / 6
"""The part of the TTL by which a leader stops trusting its lease before others may take it."""


class Leadership:
    """A service that gets and renews the lease of a shard. Other services check `lease` before they act."""

    name = "leadership"

    def __init__(
        self,
        shard: Shard,
        provider: LeaseProvider,
        clock: ClusterClock,
        observer: Observer,
        *,
        ttl_s: float,
        heartbeat_s: float,
    ) -> None:
        self.wake = Wake()
        self.shard = shard
        self._provider = provider
        self._clock = clock
        self._observer = observer
        self._ttl_s = ttl_s
        self._heartbeat_s = heartbeat_s
        self._lease: Lease | None = None
        self._trusted_until = 0.0
        self._on_elected: list[Callable[[Lease], None]] = []
        self._is_stopping = False
        self._is_wanted = True
        self._acts = 0

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Mark writes under the lease as in flight. A hand-over waits until they have ended."""
        self._acts += 1
        try:
            yield
        finally:
            self._acts -= 1

    @property
    def is_acting(self) -> bool:
        return self._acts > 0

    def want(self, is_wanted: bool) -> None:
        """Set whether to campaign. A lease that is held is kept either way."""
        was_wanted, self._is_wanted = self._is_wanted, is_wanted
        if is_wanted and not was_wanted:
            self.wake.set()

    def on_elected(self, listener: Callable[[Lease], None]) -> None:
        self._on_elected.append(listener)

    @property
    def lease(self) -> Lease | None:
        """Our lease; None: there is none that can be trusted now."""
        if self._lease is not None and self._clock.monotonic() >= self._trusted_until:
            self.lose("it could not be renewed in time")
        return self._lease

    def lose(self, reason: str) -> None:
        """Step down: stop acting as the leader, even if the row still names us."""
        if self._lease is None:
            return
        lease, self._lease = self._lease, None
        self._observer.notify(LeaseLost(self.shard.number, lease.epoch, reason))
        self.wake.set()

    async def step(self) -> float | None:
        if self._is_stopping:
            return None
        lease = self.lease
        if lease is None and not self._is_wanted:
            return None
        return await (self._campaign() if lease is None else self._renew(lease))

    async def _campaign(self) -> float:
        sent_at = self._clock.monotonic()
        try:
            answer = await self._provider.acquire(self.shard)
        except FencedError:
            # The number of shards has changed: this object will be replaced.
            return self._heartbeat_s
        self._clock.observe(answer.store_now, sent_at)
        self._observer.notify(LeaseAttempted(self.shard.number, answer.result))
        if answer.lease is not None and not self._is_stopping:
            self._trust(answer.lease, sent_at)
            self._observer.notify(
                LeaderElected(self.shard.number, answer.lease.epoch, answer.lease.instance_id)
            )
            for listener in self._on_elected:
                listener(answer.lease)
        # Wake up when a silent leader may be replaced, if that is before the next heartbeat.
        return self._heartbeat_s if answer.free_in_s is None else min(self._heartbeat_s, answer.free_in_s)

    async def _renew(self, lease: Lease) -> float:
        sent_at = self._clock.monotonic()
        try:
            answer = await self._provider.renew(lease)
        except FencedError:
            self.lose("its shard is gone")
            return 0.0
        self._clock.observe(answer.store_now, sent_at)
        self._observer.notify(ClockObserved(self._clock.offset_s))
        if answer.lease is None:
            self.lose("another instance has taken it")
        elif self.lease is not None:
            # If the trust window closed during the renewal, the leader has already stepped down.
            self._trust(lease, sent_at)
        return self._heartbeat_s

    def _trust(self, lease: Lease, sent_at: float) -> None:
        self._lease = lease
        self._trusted_until = sent_at + self._ttl_s * (1 - MARGIN)

    async def release(self) -> None:
        """Stop leading on purpose, for good."""
        self._is_stopping = True
        lease = self.lay_down()
        if lease is not None:
            await self.give_back(lease)

    def lay_down(self) -> Lease | None:
        """Stop acting as the leader. The row stays ours until `give_back`, or until it becomes stale."""
        lease, self._lease = self._lease, None
        return lease

    async def give_back(self, lease: Lease) -> None:
        """Release the row, so that another instance can take it."""
        await self._provider.release(lease)
        self._observer.notify(LeaseReleased(self.shard.number, lease.epoch))
