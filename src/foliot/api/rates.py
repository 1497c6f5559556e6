"""How many requests a caller may make: a weighted count of this window and the last.

A window is a span of the cluster's time, the same for everybody. Of the last one as much counts as of it lies
within one window's length before now, as if its requests had come evenly. So no burst across a boundary gets
twice the rate, and a name costs two numbers. What is refused does not count: who keeps asking gets its rate,
not nothing.

Where the counts are:

- memory: exact, for one process.
- database: memory, exchanged with `rate_t` about once a second. A request costs no statement. An instance
  counts what it lets through at once, and hears what others did in the exchange after its own next request
  of the name: a caller that spreads its requests over n instances gets at most its rate from each until
  then, and its rate from all of them afterwards. While the database is away every instance counts alone. An
  exchange whose outcome is not known is repeated, so a second's requests may count twice.
- Redis: exact for all instances, at one round trip per request. While it is away every instance counts alone.

The counting of `limits` itself is used with Redis. Its memory storage looks at every name it knows on every
request (1.4 ms with 10,000 names, here 4 µs) and has windows that no two processes share.
"""

import asyncio
import hashlib
import math
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from itertools import islice
from typing import Any, Protocol

from limits import RateLimitItem, parse_many
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import ConfigurationError, StorageError

from foliot.model.errors import FoliotError, RateLimitedError, SettingError
from foliot.model.event import Observer, Observers, RedisFailed
from foliot.model.instant import instant_of, micros_of
from foliot.service import Wake
from foliot.store.rates import Rates, RateWindow
from foliot.timing.clock import Clock

EXCHANGE_S = 1.0
MAX_EXCHANGED = 5_000
"""Names per statement."""
MAX_NAMES = 100_000
"""Beyond it the name known longest is forgotten: who has that many addresses can't have the memory too."""
TIDY_S = 60.0
PRUNED_AT_ONCE = 1_000
KEPT_S = 3600.0
"""How long windows stay in the database at least: another instance's setting may have longer ones."""
REDIS_LIMIT_S = 0.25
LONGEST_NAME = 200


class RateKind(StrEnum):
    """Whom a rate is for."""

    CREDENTIAL = "credential"
    ANONYMOUS = "anonymous"
    """Requests without a credential, counted by address."""
    FAILED = "failed"
    """Credentials that are not valid, counted by address and by the id of the key."""


class RedisAwayError(FoliotError):
    """Redis can't be reached; rates hold for each process by itself until it can."""


def parse_rate(text: str) -> RateLimitItem | None:
    """The rate of a setting such as `6000/minute` or `100/15minutes`; None for `off`. Raises ValueError."""
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
    """The name to count an address by: a network of IPv6 is one caller's, who may use any address of it."""
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
    """None if one more request is within the rate, else the seconds until one is.

    `last` and `this` are the requests of the two windows, `elapsed_s` is how much of this one has passed.
    """
    if math.floor(last * (1 - elapsed_s / window_s)) + this < amount:
        return None
    if this < amount:
        return max(0.0, window_s * (1 - (amount - this) / last) - elapsed_s)
    return window_s - elapsed_s + window_s * (1 - amount / this)


class RateStorage(Protocol):
    """Where the counts are."""

    async def take(self, name: str, rate: RateLimitItem) -> float | None:
        """Count one request, or say how many seconds there are to wait."""
        ...

    async def step(self) -> float | None:
        """Upkeep, as a service's."""
        ...


class RateLimiter:
    """A service that counts requests by the name of their caller; each kind of caller has a rate."""

    name = "rates"

    def __init__(self, storage: RateStorage, rates: Mapping[RateKind, RateLimitItem | None]) -> None:
        self.wake = Wake()
        self._storage = storage
        self._rates = dict(rates)

    async def hit(self, name: str, kind: RateKind) -> float | None:
        """Count a request: None if it may go on, else the seconds to wait."""
        rate = self._rates[kind]
        return None if rate is None else await self._storage.take(_fitting(kind, name, rate), rate)

    async def require(self, name: str, kind: RateKind) -> None:
        """Count a request. Raises RateLimitedError if it is one too many."""
        wait = await self.hit(name, kind)
        if wait is not None:
            raise RateLimitedError(wait)

    async def step(self) -> float | None:
        return await self._storage.step()


def _fitting(kind: RateKind, name: str, rate: RateLimitItem) -> str:
    # With its length: while instances have different settings, windows of two lengths may begin together.
    prefix = f"{kind}/{rate.get_expiry()}/"
    if len(prefix) + len(name) > LONGEST_NAME or not (name.isascii() and name.isprintable()):
        name = hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()
    return prefix + name


# --- memory --------------------------------------------------------------------------------------------


class _Window:
    """Requests of one name in one window."""

    __slots__ = ("is_read", "known", "unsent")

    def __init__(self) -> None:
        self.known = 0
        """In the whole cluster, as far as it was heard of."""
        self.unsent = 0
        """Here, and not yet told to the others."""
        self.is_read = False
        """Whether `known` was read after the window had ended: then it is all there is to know."""

    @property
    def total(self) -> int:
        return self.known + self.unsent


class _Name:
    __slots__ = ("index", "last", "this", "window_us")

    def __init__(self, window_us: int, index: int) -> None:
        self.window_us = window_us
        self.index = index
        self.this = _Window()
        self.last = _Window()

    def roll(self, index: int) -> None:
        """Go on to the window of this number."""
        # A clock that was set back across a boundary a little must not forget what was counted.
        if index in (self.index, self.index - 1):
            return
        self.last = self.this if index == self.index + 1 else _Window()
        self.this = _Window()
        self.index = index

    @property
    def begin_us(self) -> int:
        return self.index * self.window_us


class MemoryRates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, _Name] = {}
        self._tidied_at = clock.monotonic()

    async def take(self, name: str, rate: RateLimitItem) -> float | None:
        window_s = rate.get_expiry()
        now_us = micros_of(self._clock.now())
        index = now_us // (window_s * 1_000_000)
        known = self._names.get(name)
        if known is None:
            known = self._add(name, _Name(window_s * 1_000_000, index))
        known.roll(index)
        elapsed_s = max(0, now_us - known.begin_us) / 1_000_000
        wait = wait_s(known.last.total, known.this.total, rate.amount, window_s, elapsed_s)
        if wait is None:
            known.this.unsent += 1
            self._note(name, known)
        return wait

    async def step(self) -> float | None:
        self._tidy()
        return TIDY_S

    def _add(self, name: str, made: _Name) -> _Name:
        if len(self._names) >= MAX_NAMES:
            del self._names[next(iter(self._names))]
        self._names[name] = made
        return made

    def _note(self, name: str, known: _Name) -> None:
        """Told of every request that is let through."""

    def _tidy(self) -> bool:
        """Now and then, forget names of which nothing counts any more; whether it is time."""
        if self._clock.monotonic() - self._tidied_at < TIDY_S:
            return False
        self._tidied_at = self._clock.monotonic()
        now_us = micros_of(self._clock.now())
        over = [name for name, known in self._names.items() if known.begin_us + 2 * known.window_us <= now_us]
        for name in over:
            del self._names[name]
        return True


# --- database ------------------------------------------------------------------------------------------


class DatabaseRates(MemoryRates):
    def __init__(self, clock: Clock, store: Rates) -> None:
        super().__init__(clock)
        self._store = store
        self._changed: dict[str, _Name] = {}
        self._longest_us = 0

    async def step(self) -> float | None:
        changed, self._changed = self._changed, {}
        try:
            while changed:
                await self._exchange(changed)
        finally:
            self._changed = changed | self._changed
        if self._tidy():
            kept_us = max(2 * self._longest_us, int(KEPT_S * 1_000_000))
            before = instant_of(micros_of(self._clock.now()) - kept_us)
            while await self._store.prune(before=before, limit=PRUNED_AT_ONCE) == PRUNED_AT_ONCE:
                pass
        return EXCHANGE_S

    def _note(self, name: str, known: _Name) -> None:
        self._changed[name] = known
        self._longest_us = max(self._longest_us, known.window_us)

    async def _exchange(self, changed: dict[str, _Name]) -> None:
        """Tell the others what some names did here since the last time, and hear what they did there."""
        some = dict(islice(changed.items(), MAX_EXCHANGED))
        windows, ended = _windows_of(some)
        sent = {key: window.unsent for key, window in windows.items()}
        totals = await self._store.add(sent)
        # Requests went on being counted meanwhile.
        for key, window in windows.items():
            window.unsent -= sent[key]
            window.known = totals[key]
        for window in ended:
            window.is_read = True
        for name in some:
            del changed[name]


def _windows_of(names: Mapping[str, _Name]) -> tuple[dict[RateWindow, _Window], list[_Window]]:
    """The windows to exchange of these names; and those of them that have ended."""
    windows: dict[RateWindow, _Window] = {}
    ended: list[_Window] = []
    for name, known in names.items():
        windows[RateWindow(name, instant_of(known.begin_us))] = known.this
        # Once more after its end, also where nothing came in here: the name may have been elsewhere.
        if known.last.unsent or not known.last.is_read:
            windows[RateWindow(name, instant_of(known.begin_us - known.window_us))] = known.last
            ended.append(known.last)
    return windows, ended


# --- Redis ---------------------------------------------------------------------------------------------


class RedisRates:
    """Counts in Redis, by the storage of `limits`; needs the extra `redis`."""

    def __init__(self, url: str, clock: Clock, observer: Observer | None = None) -> None:
        """Connects with the first request. Raises SettingError."""
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
                # Once is enough: no other request is to wait for it. The next step sees to its return.
                self.is_away = True
                self._tell(error)
        return await self._local.take(name, rate)

    async def _take(self, name: str, rate: RateLimitItem) -> float | None:
        if await self._strategy.hit(rate, name):
            return None
        window_s = rate.get_expiry()
        last, _, this, ends_s = await self._storage.get_sliding_window(rate.key_for(name), window_s)
        # Its windows begin with a name's first request, and are kept for twice their length.
        elapsed_s = min(max(0.0, 2 * window_s - ends_s), window_s)
        return wait_s(last, this, rate.amount, window_s, elapsed_s) or 0.0

    async def step(self) -> float | None:
        """Raises RedisAwayError for as long as it is."""
        await self._local.step()
        if self.is_away:
            try:
                await self._look()
            except (RedisAwayError, OSError, TimeoutError) as error:
                self._tell(error)
                raise
            self.is_away = False
        return EXCHANGE_S

    async def _look(self) -> None:
        async with asyncio.timeout(REDIS_LIMIT_S):
            is_back = await self._storage.check()
        if not is_back:
            raise RedisAwayError("Redis can't be reached: rates hold for each process by itself")

    def _tell(self, error: Exception) -> None:
        self._observer.notify(RedisFailed("rates", f"{type(error).__name__}: {error}"))

    async def close(self) -> None:
        bridge: Any = self._storage.bridge
        await bridge.get_connection().aclose()
