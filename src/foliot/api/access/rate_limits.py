"""Rate limits of callers: a sliding window counter, weighted over the current and the previous window.

All instances have the same windows, in cluster time. The previous window counts by the share of it that lies
within one window length before now, as if its requests had come evenly. So a burst across a boundary does not
get twice the rate, and a name needs only two numbers. Refused requests don't count: a caller that sends too
many still gets its rate.

Where the counts are stored:

- memory: exact, but every process counts alone.
- Redis: exact for all processes, with one round trip per request. While Redis is unreachable, every process
  counts alone.

With Redis, the package `limits` does the counting. Its memory storage is not used: it scans all names on
every request (1.4 ms with 10,000 names; here 4 µs), and its windows differ between processes.
"""

import asyncio
import hashlib
import math
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

from limits import RateLimitItem, parse_many
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import ConfigurationError, StorageError

from foliot.model.errors import FoliotError, RateLimitedError, SettingError
from foliot.model.event import Observer, Observers
from foliot.model.instance_events import RedisFailed
from foliot.model.instant import micros_of
from foliot.service import Wake
from foliot.timing.clock import Clock

MAX_NAMES = 100_000
"""Maximum number of names in memory. Beyond it the oldest is dropped, so that a caller with very many
addresses can't fill the memory."""
PRUNE_S = 60.0
REDIS_CHECK_S = 1.0
REDIS_LIMIT_S = 0.25
LONGEST_NAME = 200


class RateKind(StrEnum):
    """The kinds of callers, each with a rate of its own."""

    CREDENTIAL = "credential"
    ANONYMOUS = "anonymous"
    """Requests without a credential, counted by address."""
    FAILED = "failed"
    """Requests with a credential that is not valid, counted by address and by key id."""


class RedisAwayError(FoliotError):
    """Redis can't be reached. Until it can, each process counts alone."""


def parse_rate(text: str) -> RateLimitItem | None:
    """Parse a rate such as `6000/minute` or `100/15minutes`. None: `off`. Raises ValueError."""
    if text.strip().lower() == "off":
        return None
    try:
        [rate] = parse_many(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a rate; write it as 6000/minute or 100/15minutes, or off"
        ) from None
    if rate.amount < 1:
        raise ValueError(f"{text!r} would let nobody in; for no limit write off")
    return rate


def name_of_address(address: str) -> str:
    """Return the name under which to count an address. For IPv6 it is the /64 network.

    A caller can use any address of its IPv6 network.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
    return str(parsed)


def wait_s(last: int, this: int, amount: int, window_s: float, elapsed_s: float) -> float | None:
    """Return the seconds until one more request is within the rate. None: it is now.

    `last` and `this` are the request counts of the previous and the current window. `elapsed_s` is the time
    since the current window began.
    """
    if math.floor(last * (1 - elapsed_s / window_s)) + this < amount:
        return None
    if this < amount:
        return max(0.0, window_s * (1 - (amount - this) / last) - elapsed_s)
    return window_s - elapsed_s + window_s * (1 - amount / this)


class RateStorage(Protocol):
    """Stores the counts."""

    async def take(self, name: str, rate: RateLimitItem) -> float | None:
        """Count one request and return None, or return the seconds to wait without counting it."""
        ...

    async def step(self) -> float | None:
        """Do maintenance, as the step of a service: return the seconds until the next one."""
        ...


class RateLimiter:
    """A service that counts requests by the name of the caller, with one rate per kind of caller."""

    name = "rates"

    def __init__(self, storage: RateStorage, rates: Mapping[RateKind, RateLimitItem | None]) -> None:
        self.wake = Wake()
        self._storage = storage
        self._rates = dict(rates)

    async def hit(self, name: str, kind: RateKind) -> float | None:
        """Count a request. Return the seconds to wait. None: the request is within the rate."""
        rate = self._rates[kind]
        return None if rate is None else await self._storage.take(_fitting(kind, name, rate), rate)

    async def require(self, name: str, kind: RateKind) -> None:
        """Count a request. Raises RateLimitedError if it exceeds the rate."""
        wait = await self.hit(name, kind)
        if wait is not None:
            raise RateLimitedError(wait)

    async def step(self) -> float | None:
        return await self._storage.step()


def _fitting(kind: RateKind, name: str, rate: RateLimitItem) -> str:
    # The name contains the window length: while instances have different settings, windows of different
    # lengths can begin at the same time.
    prefix = f"{kind}/{rate.get_expiry()}/"
    if len(prefix) + len(name) > LONGEST_NAME or not (name.isascii() and name.isprintable()):
        name = hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()
    return prefix + name


# --- memory --------------------------------------------------------------------------------------------


class _Name:
    """The request counts of one name in the current window and the one before."""

    __slots__ = ("index", "last", "this", "window_us")

    def __init__(self, window_us: int, index: int) -> None:
        self.window_us = window_us
        self.index = index
        self.this = 0
        self.last = 0

    def roll(self, index: int) -> None:
        """Advance to the window with this index."""
        # If the clock is set back a little across a boundary, the counts must not be lost.
        if index in (self.index, self.index - 1):
            return
        self.last = self.this if index == self.index + 1 else 0
        self.this = 0
        self.index = index

    @property
    def begin_us(self) -> int:
        return self.index * self.window_us


class MemoryRates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, _Name] = {}

    async def take(self, name: str, rate: RateLimitItem) -> float | None:
        window_s = rate.get_expiry()
        now_us = micros_of(self._clock.now())
        index = now_us // (window_s * 1_000_000)
        known = self._names.get(name)
        if known is None:
            known = self._add(name, _Name(window_s * 1_000_000, index))
        known.roll(index)
        elapsed_s = max(0, now_us - known.begin_us) / 1_000_000
        wait = wait_s(known.last, known.this, rate.amount, window_s, elapsed_s)
        if wait is None:
            known.this += 1
        return wait

    async def step(self) -> float | None:
        """Remove names whose windows have all expired."""
        now_us = micros_of(self._clock.now())
        over = [name for name, known in self._names.items() if known.begin_us + 2 * known.window_us <= now_us]
        for name in over:
            del self._names[name]
        return PRUNE_S

    def _add(self, name: str, made: _Name) -> _Name:
        if len(self._names) >= MAX_NAMES:
            del self._names[next(iter(self._names))]
        self._names[name] = made
        return made


# --- Redis ---------------------------------------------------------------------------------------------


class RedisRates:
    """Counts in Redis, with the storage of the package `limits`. Needs the extra `redis`."""

    def __init__(self, url: str, clock: Clock, observer: Observer | None = None) -> None:
        """Prepare the client. It connects with the first request. Raises SettingError."""
        self._observer = Observers(()) if observer is None else observer
        try:
            self._storage = RedisStorage(
                f"async+{url}",
                wrap_exceptions=True,
                implementation="redispy",
                key_prefix="foliot:rates",
                socket_timeout=REDIS_LIMIT_S,
                socket_connect_timeout=REDIS_LIMIT_S,
            )
        except ConfigurationError:
            raise SettingError("FOLIOT_REDIS_URL needs a package: pip install 'foliot[redis]'") from None
        except ValueError:
            raise SettingError(
                "FOLIOT_REDIS_URL is not a URL of Redis; right would be redis://host:6379/0"
            ) from None
        self._strategy = SlidingWindowCounterRateLimiter(self._storage)
        self._local = MemoryRates(clock)
        self.is_away = False

    async def take(self, name: str, rate: RateLimitItem) -> float | None:
        if not self.is_away:
            try:
                async with asyncio.timeout(REDIS_LIMIT_S):
                    return await self._take(name, rate)
            except (StorageError, OSError, TimeoutError) as error:
                # No other request must wait for the timeout. `step` checks whether Redis is back.
                self.is_away = True
                self._tell(error)
        return await self._local.take(name, rate)

    async def _take(self, name: str, rate: RateLimitItem) -> float | None:
        if await self._strategy.hit(rate, name):
            return None
        window_s = rate.get_expiry()
        last, _, this, ends_s = await self._storage.get_sliding_window(rate.key_for(name), window_s)
        # In `limits`, a window begins with a name's first request and expires after twice its length.
        elapsed_s = min(max(0.0, 2 * window_s - ends_s), window_s)
        return wait_s(last, this, rate.amount, window_s, elapsed_s) or 0.0

    async def step(self) -> float | None:
        """Check whether Redis is back. Raises RedisAwayError while it is not."""
        await self._local.step()
        if self.is_away:
            try:
                await self._check_redis()
            except (RedisAwayError, OSError, TimeoutError) as error:
                self._tell(error)
                raise
            self.is_away = False
        return REDIS_CHECK_S

    async def _check_redis(self) -> None:
        async with asyncio.timeout(REDIS_LIMIT_S):
            is_back = await self._storage.check()
        if not is_back:
            raise RedisAwayError("Redis can't be reached: rates hold for each process by itself")

    def _tell(self, error: Exception) -> None:
        self._observer.notify(RedisFailed("rates", f"{type(error).__name__}: {error}"))

    async def close(self) -> None:
        bridge: Any = self._storage.bridge
        await bridge.get_connection().aclose()
