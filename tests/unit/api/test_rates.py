"""How many requests a caller may make, and what happens where the counts can't be had."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.servers import free_port

from foliot.access.rates_sql import Rates, RateWindow
from foliot.api.access import rate_limits as rates_module
from foliot.api.access.rate_limits import (
    DatabaseRates,
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
from foliot.model.errors import DatabaseUnreachableError, RateLimitedError, SettingError
from foliot.model.event import DomainEvent, Observer, RedisFailed, ServiceFailed, ServiceRecovered
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


async def test_a_name_that_no_database_could_hold_is_counted_all_the_same(clock: VirtualClock) -> None:
    ledger = Ledger()
    limiter = limiter_of(DatabaseRates(clock, ledger), "1/minute")
    for name in ("x" * 10_000, "a\0b", "ü", "\ud800"):
        assert [await limiter.hit(name, KEY), await limiter.hit(name, KEY)] == [None, 60]
    await limiter.step()
    stored = {window.name for window in ledger.totals}
    assert len(stored) == 4
    assert all(len(name) <= 200 and name.isascii() and name.isprintable() for name in stored)


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


# --- with a database -----------------------------------------------------------------------------------


class Ledger(Rates):
    """The database's part, in memory: counts its statements, and may be away or slow."""

    def __init__(self) -> None:
        self.totals: dict[RateWindow, int] = {}
        self.statements: list[int] = []
        self.is_away = False
        self.loses_replies = False
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.is_asked = asyncio.Event()
        self.pruned_before: list[datetime] = []
        self.meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def add(self, amounts: Mapping[RateWindow, int]) -> dict[RateWindow, int]:
        self.statements.append(len(amounts))
        self.is_asked.set()
        if self.meanwhile is not None:
            await self.meanwhile()
        await self.may_go_on.wait()
        if self.is_away:
            raise DatabaseUnreachableError("away")
        for window, amount in amounts.items():
            self.totals[window] = self.totals.get(window, 0) + amount
        if self.loses_replies:
            raise DatabaseUnreachableError("the reply is lost")
        return {window: self.totals[window] for window in amounts}

    async def prune(self, *, before: datetime, limit: int) -> int:
        self.pruned_before.append(before)
        old = [window for window in self.totals if window.window_ts < before][:limit]
        for window in old:
            del self.totals[window]
        return len(old)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


async def test_a_request_costs_no_statement_and_an_exchange_costs_one(
    clock: VirtualClock, ledger: Ledger
) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger))
    for number in range(100):
        await hits(limiter, 3, f"name-{number}")
    assert ledger.statements == []
    assert await limiter.step() == 1.0
    assert len(ledger.statements) == 1
    assert await limiter.step() == 1.0
    assert len(ledger.statements) == 1, "nothing has changed since"


async def test_instances_share_a_rate_from_the_exchange_on(clock: VirtualClock, ledger: Ledger) -> None:
    one, two = (limiter_of(DatabaseRates(clock, ledger)) for _ in range(2))
    assert await hits(one, 6) == 6
    assert await hits(two, 1) == 1
    await one.step()
    await two.step()
    assert await hits(two, 10) == 3, "it has heard of the six"
    await two.step()
    await one.step()
    assert await hits(one, 1) == 1, "it has heard of nothing yet, since nobody came here"
    await one.step()
    assert await hits(one, 10) == 0
    assert sum(ledger.totals.values()) == 11


async def test_what_is_counted_during_an_exchange_is_told_with_the_next(
    clock: VirtualClock, ledger: Ledger
) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger))
    await hits(limiter, 2)
    ledger.may_go_on.clear()
    exchange = asyncio.ensure_future(limiter.step())
    await ledger.is_asked.wait()
    assert await hits(limiter, 3) == 3
    ledger.may_go_on.set()
    await exchange
    assert await hits(limiter, 10) == 5
    await limiter.step()
    assert sum(ledger.totals.values()) == 10


async def test_an_exchange_ends_however_many_requests_come_meanwhile(
    clock: VirtualClock, ledger: Ledger
) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger))
    ledger.meanwhile = lambda: hits(limiter, 1)
    await hits(limiter, 1)
    await limiter.step()
    assert (len(ledger.statements), sum(ledger.totals.values())) == (1, 1)
    await limiter.step()
    assert (len(ledger.statements), sum(ledger.totals.values())) == (2, 2)


async def test_many_names_are_exchanged_in_bounded_statements(
    clock: VirtualClock, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates_module, "MAX_EXCHANGED", 10)
    limiter = limiter_of(DatabaseRates(clock, ledger))
    for number in range(25):
        await hits(limiter, 1, f"name-{number}")
    await limiter.step()
    assert len(ledger.statements) == 3
    assert sum(ledger.totals.values()) == 25


async def test_while_the_database_is_away_limits_are_local_and_then_all_is_told(
    clock: VirtualClock, ledger: Ledger
) -> None:
    one, two = (limiter_of(DatabaseRates(clock, ledger)) for _ in range(2))
    told = Told()
    loop = Loop(one, told)
    ledger.is_away = True
    assert await hits(one, 6) == 6
    await loop.turn()
    assert await hits(one, 2) == 2
    await loop.turn()
    assert await hits(one, 5) == 2, "the local limit holds"
    assert [type(event) for event in told] == [ServiceFailed, ServiceFailed]
    ledger.is_away = False
    await loop.turn()
    assert type(told[-1]) is ServiceRecovered
    assert sum(ledger.totals.values()) == 10, "each is counted once"
    assert await hits(two, 1) == 1
    await two.step()
    assert await hits(two, 1) == 0


async def test_an_exchange_whose_reply_is_lost_may_count_its_requests_twice_and_no_more(
    clock: VirtualClock, ledger: Ledger
) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger))
    ledger.loses_replies = True
    await hits(limiter, 2)
    with pytest.raises(DatabaseUnreachableError):
        await limiter.step()
    ledger.loses_replies = False
    await limiter.step()
    await limiter.step()
    assert sum(ledger.totals.values()) == 4
    assert await hits(limiter, 10) == 6


async def test_an_exchange_that_is_cancelled_loses_nothing(clock: VirtualClock, ledger: Ledger) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger))
    await hits(limiter, 2)
    ledger.may_go_on.clear()
    exchange = asyncio.ensure_future(limiter.step())
    await ledger.is_asked.wait()
    exchange.cancel()
    await asyncio.wait({exchange})
    ledger.may_go_on.set()
    await limiter.step()
    assert sum(ledger.totals.values()) == 2


async def test_an_instance_that_a_caller_comes_to_learns_of_its_last_window(
    clock: VirtualClock, ledger: Ledger
) -> None:
    one, two = (limiter_of(DatabaseRates(clock, ledger)) for _ in range(2))
    assert await hits(one, 10) == 10
    await one.step()
    clock.advance(60.5)
    assert await hits(two, 1) == 1
    await two.step()
    assert await hits(two, 10) == 0, "nine and a bit of the last window count"


async def test_the_last_window_is_read_once_more_after_its_end(clock: VirtualClock, ledger: Ledger) -> None:
    one, two = (limiter_of(DatabaseRates(clock, ledger)) for _ in range(2))
    await hits(one, 1)
    await one.step()
    await hits(two, 9)
    await two.step()
    clock.advance(60.5)
    assert await hits(one, 1) == 1
    ledger.is_away = True
    with pytest.raises(DatabaseUnreachableError):
        await one.step()
    ledger.is_away = False
    await one.step()
    assert ledger.statements[-1] == 2
    assert await hits(one, 10) == 0
    clock.advance(20)
    assert await hits(one, 1) == 1
    await one.step()
    assert ledger.statements[-1] == 1, "all of it is known by then"


async def test_old_windows_are_pruned_now_and_then_and_none_that_may_still_count(
    clock: VirtualClock, ledger: Ledger
) -> None:
    limiter = limiter_of(DatabaseRates(clock, ledger), "10/3hours")
    await hits(limiter, 1)
    await limiter.step()
    assert ledger.pruned_before == []
    clock.advance(3 * 3600)
    await hits(limiter, 1)
    await limiter.step()
    assert len(ledger.totals) == 3
    clock.advance(6 * 3600)
    await limiter.step()
    assert len(ledger.pruned_before) == 2
    assert {window.window_ts.hour for window in ledger.totals} == {15}


class Told(list[DomainEvent]):
    def notify(self, event: DomainEvent) -> None:
        self.append(event)


# --- with Redis ----------------------------------------------------------------------------------------


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
