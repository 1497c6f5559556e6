"""A response cache in Redis, shared by all API processes, for responses that many open pages poll.

Entries expire after KEPT_S. On a miss, one request per process computes the response, and the others wait for
it. While Redis is unreachable, every request computes its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.model.event import Observer
from foliot.model.instance_events import RedisFailed
from foliot.timing.clock import Clock

KEPT_S = 1.0
CALL_S = 0.25
AWAY_S = 5.0
"""How long Redis is not used after a failure, so that requests don't wait for its timeout each time."""

Make = Callable[[], Awaitable[bytes]]


class ResponseCache:
    def __init__(self, url: str, clock: Clock, observer: Observer, prefix: str) -> None:
        """Prepare the client. It connects on first use. `prefix` separates clusters that share a Redis."""
        self._redis = Redis.from_url(
            url,
            socket_connect_timeout=CALL_S,
            socket_timeout=CALL_S,
            retry=Retry(NoBackoff(), 0),
            client_name="foliot",
        )
        self._clock = clock
        self._observer = observer
        self._prefix = f"foliot:kept:{prefix}"
        self._away_until = float("-inf")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, name: str, make: Make, *, may_keep: Callable[[], bool] = lambda: True) -> bytes:
        """Return the cached response with this name, or compute and cache it.

        `may_keep` is called after `make`. If it returns False, the response is not cached.
        """
        if self._clock.monotonic() < self._away_until:
            return await make()
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            kept = await self._call(lambda key: self._redis.get(key), name)
            if isinstance(kept, bytes):
                return kept
            made = await make()
            if may_keep():
                await self._call(lambda key: self._redis.set(key, made, px=int(KEPT_S * 1000)), name)
            return made

    async def close(self) -> None:
        await self._redis.aclose()

    async def _call(self, call: Callable[[str], Awaitable[object]], name: str) -> object | None:
        if self._clock.monotonic() < self._away_until:
            return None
        try:
            async with asyncio.timeout(CALL_S):
                return await call(f"{self._prefix}:{name}")
        except (RedisError, OSError, TimeoutError) as error:
            self._away_until = self._clock.monotonic() + AWAY_S
            self._observer.notify(RedisFailed("cache", f"{type(error).__name__}: {error}"))
            return None
