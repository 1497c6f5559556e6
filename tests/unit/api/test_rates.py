"""How many requests a caller may make, and what happens where the counts can't be had."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.servers import free_port

from foliot.api.access import rate_limits as rates_module
from foliot.api.access.rate_limits import (
    MemoryRates,
    RateKind,
    RateLimiter,
    RateStorage,
    RedisAwayError,
    RedisRates,
    name_of_address,
    parse_rate,
    wait_s,
)
from foliot.model.errors import RateLimitedError, SettingError
from foliot.model.event import DomainEvent, Observer
from foliot.model.instance_events import RedisFailed, ServiceFailed, ServiceRecovered
from foliot.service import Loop
from foliot.timing.clock import VirtualClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = RateKind.CREDENTIAL


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


def limiter_of(storage: RateStorage, rate: str = "10/minute") -> RateLimiter:
    return RateLimiter(storage, {KEY: parse_rate(rate), RateKind.ANONYMOUS: parse_rate("off")})


async def hits(limiter: RateLimiter, count: int, name: str = "a") -> int:
    """Make so many requests; how many were let through."""
    return [await limiter.hit(name, KEY) for _ in range(count)].count(None)


# --- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount", "seconds"),
    [
        ("6000/minute", 6000, 60),
        ("100/15minutes", 100, 900),
        ("1/second", 1, 1),
        (" 5 / 2 hours ", 5, 7200),
        ("7/DAY", 7, 86400),
    ],
)
def test_a_rate_is_an_amount_and_a_span(text: str, amount: int, seconds: int) -> None:
    rate = parse_rate(text)
    assert rate is not None
    assert (rate.amount, rate.get_expiry()) == (amount, seconds)


@pytest.mark.parametrize("text", ["off", " OFF "])
def test_a_rate_can_be_off(text: str) -> None:
    assert parse_rate(text) is None


@pytest.mark.parametrize(
    "text", ["", "6000", "minute", "6000/fortnight", "-1/minute", "1.5/minute", "1/minute;2/hour", "9" * 9999]
)
def test_a_setting_that_is_no_rate_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="6000/minute or 100/15minutes, or off"):
        parse_rate(text)


def test_a_rate_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="write off"):
        parse_rate("0/minute")


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_addresses_that_one_caller_has_are_counted_as_one(address: str, name: str) -> None:
    assert name_of_address(address) == name


async def test_any_name_is_counted_whatever_its_characters_and_length(clock: VirtualClock) -> None:
    storage = MemoryRates(clock)
    limiter = limiter_of(storage, "1/minute")
    for name in ("x" * 10_000, "a\0b", "ü", "\ud800"):
        assert [await limiter.hit(name, KEY), await limiter.hit(name, KEY)] == [None, 60]
    assert len(storage._names) == 4
    assert all(len(name) <= 200 and name.isascii() and name.isprintable() for name in storage._names)


# --- counting ------------------------------------------------------------------------------------------


@given(
    last=st.integers(0, 300),
    this=st.integers(0, 300),
    amount=st.integers(1, 100),
    window_s=st.sampled_from([1, 60, 900]),
    part=st.floats(0, 1, exclude_max=True),
)
def test_the_wait_is_as_long_as_it_must_be_and_no_longer(
    last: int, this: int, amount: int, window_s: int, part: float
) -> None:
    def is_refused(after_s: float) -> bool:
        at_s = part * window_s + after_s
        if at_s < window_s:
            return math.floor(last * (1 - at_s / window_s)) + this >= amount
        return math.floor(this * (1 - (at_s - window_s) / window_s)) >= amount

    wait = wait_s(last, this, amount, window_s, part * window_s)
    if wait is None:
        assert not is_refused(0)
        return
    assert is_refused(0)
    assert not is_refused(wait + 1e-6)
    assume(wait > 1e-6)
    assert is_refused(wait - 1e-6)


async def test_so_many_are_let_through_and_the_rest_is_told_how_long_to_wait(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock))
    assert await hits(limiter, 15) == 10
    assert await limiter.hit("a", KEY) == 60
    with pytest.raises(RateLimitedError) as caught:
        await limiter.require("a", KEY)
    assert caught.value.retry_after_s == 60


async def test_names_and_kinds_have_counts_of_their_own(clock: VirtualClock) -> None:
    rate = parse_rate("1/minute")
    limiter = RateLimiter(MemoryRates(clock), dict.fromkeys(RateKind, rate))
    for name in ("a", "b"):
        for kind in RateKind:
            assert await limiter.hit(name, kind) is None
            assert await limiter.hit(name, kind) is not None


async def test_off_lets_everything_through(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock))
    for _ in range(1000):
        await limiter.require("a", RateKind.ANONYMOUS)


async def test_no_burst_across_a_boundary_gets_twice_the_rate(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock), "100/minute")
    clock.advance(59.9)
    assert await hits(limiter, 200) == 100
    clock.advance(0.2)
    assert await hits(limiter, 200) <= 1


async def test_who_keeps_asking_gets_the_rate_and_not_nothing(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock), "60/minute")
    let_through = 0
    for _ in range(3000):
        let_through += await hits(limiter, 1)
        clock.advance(0.1)
    assert 300 <= let_through <= 361


async def test_who_waits_as_told_is_let_through(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock))
    for _ in range(50):
        while (wait := await limiter.hit("a", KEY)) is None:
            pass
        clock.advance(wait + 0.001)
        assert await limiter.hit("a", KEY) is None


async def test_after_two_quiet_windows_everything_is_forgotten(clock: VirtualClock) -> None:
    limiter = limiter_of(MemoryRates(clock))
    await hits(limiter, 10)
    clock.advance(120)
    assert await hits(limiter, 15) == 10


@pytest.mark.parametrize(("jump_s", "let_through"), [(-0.5, 0), (-3600, 10), (3600, 10)])
async def test_a_clock_that_jumps_neither_opens_nor_shuts_the_gate_for_long(
    clock: VirtualClock, jump_s: float, let_through: int
) -> None:
    limiter = limiter_of(MemoryRates(clock))
    await hits(limiter, 10)
    clock.jump(jump_s)
    assert await hits(limiter, 15) == let_through


async def test_names_are_forgotten_once_nothing_of_them_counts(clock: VirtualClock) -> None:
    storage = MemoryRates(clock)
    limiter = limiter_of(storage)
    for number in range(50):
        await hits(limiter, 1, f"name-{number}")
    clock.advance(100)
    await hits(limiter, 1, "late")
    clock.advance(60)
    await limiter.step()
    assert len(storage._names) == 1


async def test_no_number_of_names_takes_all_memory(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates_module, "MAX_NAMES", 100)
    storage = MemoryRates(clock)
    limiter = limiter_of(storage, "1/minute")
    for number in range(1000):
        assert await limiter.hit(f"name-{number}", KEY) is None
    assert len(storage._names) == 100
    assert await limiter.hit("name-999", KEY) is not None


# --- with Redis ----------------------------------------------------------------------------------------


class Told(list[DomainEvent]):
    def notify(self, event: DomainEvent) -> None:
        self.append(event)


class RedisPuppet:
    """Speaks enough of Redis' protocol to be asked whether a request is let through, and answers as told."""

    def __init__(self) -> None:
        self.commands: list[list[bytes]] = []
        self.lets_through = True
        self.is_loading = False
        self.window = b"*4\r\n$1\r\n0\r\n:0\r\n$2\r\n10\r\n:%d\r\n"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                command = []
                for _ in range(int(line[1:])):
                    size = int((await reader.readline())[1:])
                    command.append((await reader.readexactly(size + 2))[:-2])
                self.commands.append(command)
                writer.write(self._answer(command))
        finally:
            writer.close()

    def _answer(self, command: list[bytes]) -> bytes:
        if self.is_loading:
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        match command[0].upper():
            case b"EVALSHA" if len(command) == 8:
                return b":1\r\n" if self.lets_through else b"_\r\n"
            case b"EVALSHA":
                return self.window % 90_000
            case b"PING":
                return b"+PONG\r\n"
            case b"HELLO":
                return b"%1\r\n$5\r\nproto\r\n:3\r\n"
        return b"+OK\r\n"

    @property
    def evaluated(self) -> list[list[bytes]]:
        return [command for command in self.commands if command[0].upper() == b"EVALSHA"]

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[int]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        async with server:
            yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def redis_rates(
    port: int, clock: VirtualClock, observer: Observer | None = None
) -> AsyncIterator[RedisRates]:
    rates = RedisRates(f"redis://127.0.0.1:{port}/0", clock, observer)
    yield rates
    await rates.close()


async def test_redis_decides_and_its_windows_tell_how_long_to_wait(clock: VirtualClock) -> None:
    puppet = RedisPuppet()
    async with puppet.listening() as port, redis_rates(port, clock) as rates:
        limiter = limiter_of(rates)
        assert await limiter.hit("a", KEY) is None
        puppet.lets_through = False
        # Ten in a window of a minute that began 30 s ago: its end, and then at once.
        assert await limiter.hit("a", KEY) == 30
    assert all(b"foliot:rates" in each[3] and b"credential/60/a" in each[3] for each in puppet.evaluated)


async def test_while_redis_is_away_limits_are_local_and_only_one_request_waits_for_it(
    clock: VirtualClock,
) -> None:
    puppet = RedisPuppet()
    port = free_port()
    async with redis_rates(port, clock) as rates:
        limiter = limiter_of(rates)
        told = Told()
        loop = Loop(limiter, told)
        assert await hits(limiter, 15) == 10
        assert rates.is_away
        await loop.turn()
        [failed] = told
        assert isinstance(failed, ServiceFailed)
        assert RedisAwayError.__name__ in failed.error
        async with puppet.listening(port):
            assert await hits(limiter, 1) == 0
            assert puppet.commands == [], "it is looked for by the service, not by requests"
            await loop.turn()
            assert isinstance(told[-1], ServiceRecovered)
            assert await hits(limiter, 1) == 1
            assert len(puppet.evaluated) == 1


async def test_as_long_as_redis_is_away_every_look_for_it_is_told(clock: VirtualClock) -> None:
    """An outage of an hour is more than one error."""
    told = Told()
    async with redis_rates(free_port(), clock, told) as rates:
        assert await hits(limiter_of(rates), 3) == 3
        for _ in range(3):
            with pytest.raises(RedisAwayError):
                await rates.step()
    assert [event.what for event in told if isinstance(event, RedisFailed)] == ["rates"] * 4


async def test_redis_that_can_not_serve_in_between_is_no_error(clock: VirtualClock) -> None:
    puppet = RedisPuppet()
    async with puppet.listening() as port, redis_rates(port, clock) as rates:
        limiter = limiter_of(rates)
        assert await hits(limiter, 3) == 3
        puppet.is_loading = True
        assert await hits(limiter, 15) == 10
        assert rates.is_away


@pytest.mark.parametrize("url", ["nothing", "http://host", "redis://host:port"])
def test_a_url_that_is_none_of_redis_is_refused(clock: VirtualClock, url: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_REDIS_URL"):
        RedisRates(url, clock)
