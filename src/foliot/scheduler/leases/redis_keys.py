"""Keys in Redis: SET NX PX with the owner as the value. Only the owner extends or deletes a key.

One Redis is enough: a key that it loses or grants twice changes no leader by itself (`external_lease.py`).
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.model.broker import shown
from foliot.scheduler.leases.lease_provider import ProviderUnreachableError

_EXTEND = """
local ours = {}
for _, key in ipairs(KEYS) do
    if redis.call('GET', key) == ARGV[1] then
        redis.call('PEXPIRE', key, ARGV[2])
        ours[#ours + 1] = key
    end
end
return ours
"""
_GIVE_UP = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
"""


class RedisLeases:
    name = "redis"

    def __init__(self, address: str, owner: str, *, ttl_s: float, call_s: float) -> None:
        self.address = shown(address)
        self._owner = owner
        self._ttl_ms = max(1, round(ttl_s * 1000))
        self._redis = Redis.from_url(
            address,
            socket_connect_timeout=call_s,
            socket_timeout=call_s,
            retry=Retry(NoBackoff(), 0),
            client_name="foliot-lease",
            decode_responses=True,
        )
        self._extend = self._redis.register_script(_EXTEND)
        self._give_up = self._redis.register_script(_GIVE_UP)

    async def acquire(self, key: str) -> bool:
        async with self._reaching():
            if await self._redis.set(key, self._owner, nx=True, px=self._ttl_ms):
                return True
            return bool(await self._extend(keys=[key], args=[self._owner, self._ttl_ms]))

    async def extend(self, keys: Collection[str]) -> frozenset[str]:
        async with self._reaching():
            if not keys:
                await self._redis.ping()
                return frozenset()
            return frozenset(await self._extend(keys=list(keys), args=[self._owner, self._ttl_ms]))

    async def give_up(self, key: str) -> None:
        async with self._reaching():
            await self._give_up(keys=[key], args=[self._owner])

    async def close(self) -> None:
        await self._redis.aclose()

    @asynccontextmanager
    async def _reaching(self) -> AsyncIterator[None]:
        try:
            yield
        except (RedisError, OSError, TimeoutError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ProviderUnreachableError(f"Redis at {self.address} can't be reached: {reason}") from error
