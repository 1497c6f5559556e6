"""Following and leading: the state machine of one shard on one instance, over any provider."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foliot.lease.protocol import LeaseProvider
from foliot.model.errors import FencedError
from foliot.model.event import (
    ClockObserved,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseReleased,
    Observer,
)
from foliot.model.lease import Lease, Shard
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

MARGIN = 1 / 6
"""The part of the TTL by which a leader stops trusting its lease earlier than others may take it."""


class Leadership:
    """A service. `lease` is what the rest of the scheduler asks before it acts."""

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
        """While writes are made under the lease: they come to their end before it is handed over."""
        self._acts += 1
        try:
            yield
        finally:
            self._acts -= 1

    @property
    def is_acting(self) -> bool:
        return self._acts > 0

    def want(self, is_wanted: bool) -> None:
        """Whether to campaign while it does not lead; what it leads it keeps either way."""
        was_wanted, self._is_wanted = self._is_wanted, is_wanted
        if is_wanted and not was_wanted:
            self.wake.set()

    def on_elected(self, listener: Callable[[Lease], None]) -> None:
        self._on_elected.append(listener)

    @property
    def lease(self) -> Lease | None:
        """Our lease, if it can be trusted at this moment."""
        if self._lease is not None and self._clock.monotonic() >= self._trusted_until:
            self.lose("it could not be renewed in time")
        return self._lease

    def lose(self, reason: str) -> None:
        """Step down: stop acting as the leader, whatever the row says."""
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
            # The number of shards has changed: this one is about to be replaced.
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
        # A leader that has fallen silent is replaced as soon as it may be, not at the next round.
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
            # Not if the window closed while the renewal was under way: the leader has stepped down already.
            self._trust(lease, sent_at)
        return self._heartbeat_s

    def _trust(self, lease: Lease, sent_at: float) -> None:
        self._lease = lease
        self._trusted_until = sent_at + self._ttl_s * (1 - MARGIN)

    async def release(self) -> None:
        """Stop leading on purpose, and for good."""
        self._is_stopping = True
        lease = self.lay_down()
        if lease is not None:
            await self.give_back(lease)

    def lay_down(self) -> Lease | None:
        """Stop acting as the leader. The row stays ours until it is given back, or grows old."""
        lease, self._lease = self._lease, None
        return lease

    async def give_back(self, lease: Lease) -> None:
        """Let another take what was laid down."""
        await self._provider.release(lease)
        self._observer.notify(LeaseReleased(self.shard.number, lease.epoch))
