"""The second witness of leadership: keeps our keys there, and tracks whether it answers.

Calls to the witness never delay a heartbeat of the database row: a separate service makes them. At every
heartbeat it extends the keys of the shards led here and asks again for lost ones. It gives up the keys of
shards whose row could not be renewed for as long as a lease is trusted. Followers call too, without a key to
extend. So every instance knows whether the witness is reachable.
"""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from foliot.model.broker import BrokerKind
from foliot.model.event import Observer
from foliot.model.instance_events import LeaseProviderLost, LeaseProviderReached, RedisFailed
from foliot.model.lease import Shard
from foliot.scheduler.leases.lease_provider import ExternalLeases, ProviderUnreachableError
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

AWAY_PAUSE_S = 1.0
"""Minimum pause between calls to a witness that does not answer."""

T = TypeVar("T")


class Witness:
    """A service. The witness is *away* if it has not answered for a TTL; one answer ends that."""

    name = "lease_provider"

    def __init__(
        self,
        external: ExternalLeases,
        clock: ClusterClock,
        observer: Observer,
        *,
        patience_s: float,
        trusted_s: float,
        heartbeat_s: float,
    ) -> None:
        self.wake = Wake()
        self.is_away = False
        self.since_ts: datetime | None = None
        """Since when it is up or away; None: it has neither answered nor been away yet."""
        self.cluster = "default"
        """Part of every key, so that several clusters can share a witness."""
        self._external = external
        self._clock = clock
        self._observer = observer
        self._patience_s = patience_s
        self._trusted_s = trusted_s
        self._heartbeat_s = heartbeat_s
        self._wanted: dict[Shard, float] = {}
        """The shards led or campaigned for here, and when the last renewal that succeeded was sent."""
        self._owned: set[str] = set()
        self._silent_since: float | None = clock.monotonic()

    @property
    def is_answering(self) -> bool:
        return self._silent_since is None

    def keep(self, shard: Shard, sent_at: float) -> None:
        """Keep the key of a shard that this instance leads, as long as its row is renewed."""
        if shard not in self._wanted:
            self.wake.set()
        self._wanted[shard] = sent_at

    async def acquire(self, shard: Shard) -> bool:
        """Try to get the shard's key; return whether we own it. False if the witness does not answer."""
        if not self.is_answering:
            return False
        key, asked_at = self._key(shard), self._clock.monotonic()
        try:
            is_ours = await self._ask(lambda: self._external.acquire(key))
        except ProviderUnreachableError:
            return False
        if is_ours:
            self._owned.add(key)
            self._wanted.setdefault(shard, asked_at)
        return is_ours

    async def give_up(self, shard: Shard) -> None:
        """Release the shard's key. If that fails, the key expires by itself."""
        self._wanted.pop(shard, None)
        key = self._key(shard)
        if key in self._owned:
            self._owned.discard(key)
            if self.is_answering:
                await self._try_to_give_up(key)

    def drop(self, shard: Shard) -> None:
        """Release the shard's key at the next step. Nobody waits for it: its row is free already."""
        self._wanted.pop(shard, None)
        self.wake.set()

    async def step(self) -> float | None:
        try:
            await self._keep_keys()
        except ProviderUnreachableError:
            return max(self._heartbeat_s, AWAY_PAUSE_S)
        return self._heartbeat_s

    async def _keep_keys(self) -> None:
        now = self._clock.monotonic()
        for shard, sent_at in list(self._wanted.items()):
            if now - sent_at >= self._trusted_s:
                # Nobody acts on this lease any more: let a follower take the silent row.
                await self.give_up(shard)
        wanted = {self._key(shard) for shard in self._wanted}
        asked = wanted & self._owned
        # Also without keys, so that a follower knows whether the witness answers.
        still_ours = await self._ask(lambda: self._external.extend(asked))
        self._owned -= asked - still_ours
        for key in wanted - self._owned:
            if await self._ask(lambda key=key: self._external.acquire(key)):  # type: ignore[misc]
                self._owned.add(key)
        for key in self._owned - {self._key(shard) for shard in self._wanted}:
            # The shard was given up during the calls above.
            self._owned.discard(key)
            await self._try_to_give_up(key)

    async def _try_to_give_up(self, key: str) -> None:
        try:
            await self._ask(lambda: self._external.give_up(key))
        except ProviderUnreachableError:
            return

    async def close(self) -> None:
        self._wanted.clear()
        if self.is_answering:
            for key in list(self._owned):
                await self._try_to_give_up(key)
        self._owned.clear()
        await self._external.close()

    def describe(self) -> dict[str, str | None]:
        """Return its state for the instance's registry row."""
        return {
            "kind": self._external.name,
            "address": self._external.address,
            "state": "away" if self.is_away else "up",
            "since_ts": None if self.since_ts is None else self.since_ts.isoformat(),
        }

    def _key(self, shard: Shard) -> str:
        return f"foliot/{self.cluster}/lease/{shard.of}/{shard.number}"

    # --- availability -----------------------------------------------------------------------------

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await call()
        except ProviderUnreachableError as error:
            self._failed(error)
            raise
        self._answered()
        return answer

    def _failed(self, error: ProviderUnreachableError) -> None:
        if self._external.name == BrokerKind.REDIS:
            self._observer.notify(RedisFailed("lease", str(error)))
        now = self._clock.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if not self.is_away and now - self._silent_since >= self._patience_s:
            self.is_away, self.since_ts = True, self._clock.now()
            self._observer.notify(LeaseProviderLost(self._external.name, self._external.address, str(error)))

    def _answered(self) -> None:
        if self._silent_since is None:
            return
        away_s = self._clock.monotonic() - self._silent_since if self.is_away else 0.0
        self._silent_since = None
        if self.is_away or self.since_ts is None:
            self.is_away, self.since_ts = False, self._clock.now()
            self._observer.notify(LeaseProviderReached(self._external.name, self._external.address, away_s))


def cluster_name(key: bytes) -> str:
    """Name of the cluster at a witness: a hash of the key that all instances on one database share."""
    return hashlib.sha256(b"foliot lease " + key).hexdigest()[:16]
