"""Whoever guesses at credentials is slowed down, and nobody else is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from foliot.api.access.guess_limits import HOLD_S, MAX_HELD, GuessLimit, names_of
from foliot.api.access.rate_limits import MemoryRates, RateKind, RateLimiter, parse_rate
from foliot.model.errors import RateLimitedError, UnauthenticatedError
from foliot.timing.clock import SystemClock

RATE = 3
OFFICE = ("192.0.2.1",)


class Checks:
    """Counts how many credentials were checked; holds answers until it is told to let them go."""

    def __init__(self) -> None:
        self.count = 0
        self.slept: list[float] = []
        self.may_go = asyncio.Event()

    async def wrong(self) -> str:
        self.count += 1
        raise UnauthenticatedError("unknown key")

    async def right(self) -> str:
        self.count += 1
        return "ann"

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.may_go.wait()


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def limit(checks: Checks) -> GuessLimit:
    limiter = RateLimiter(MemoryRates(SystemClock()), {RateKind.FAILED: parse_rate(f"{RATE}/hour")})
    return GuessLimit(limiter, checks.sleep)


async def use_up(limit: GuessLimit, checks: Checks, names: tuple[str, ...] = OFFICE) -> None:
    for number in range(RATE):
        with pytest.raises(UnauthenticatedError):
            await limit.check(names, f"guess {number}", checks.wrong)
    checks.may_go.set()
    with pytest.raises(RateLimitedError):
        await limit.check(names, "one more", checks.wrong)
    checks.may_go.clear()
    assert checks.slept == [HOLD_S], "only what is beyond the rate is held"
    checks.slept.clear()
    checks.count = 0


def begin(limit: GuessLimit, check: Callable[[], Awaitable[str]], credential: str) -> asyncio.Task[str]:
    return asyncio.create_task(limit.check(OFFICE, credential, check))


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_beyond_the_rate_only_a_few_guesses_are_checked_at_a_time(
    limit: GuessLimit, checks: Checks
) -> None:
    await use_up(limit, checks)
    guesses = [begin(limit, checks.wrong, f"guess {number}") for number in range(50)]
    await turns()
    assert checks.count == MAX_HELD
    assert sum(each.done() for each in guesses) == 50 - MAX_HELD
    checks.may_go.set()
    answers = await asyncio.gather(*guesses, return_exceptions=True)
    assert {type(each) for each in answers} == {RateLimitedError}
    assert checks.slept == [HOLD_S] * MAX_HELD
    again = begin(limit, checks.wrong, "guess")
    await turns()
    assert checks.count == MAX_HELD + 1, "the places are free again"
    await asyncio.gather(again, return_exceptions=True)


async def test_a_valid_credential_passes_at_once_at_an_address_that_used_up_its_rate(
    limit: GuessLimit, checks: Checks
) -> None:
    await use_up(limit, checks)
    assert await limit.check(OFFICE, None, checks.right) == "ann", "a sign-in"
    assert await limit.check(OFFICE, "a key", checks.right) == "ann"
    assert checks.slept == []


async def test_a_credential_that_was_valid_lately_passes_while_others_are_guessing(
    limit: GuessLimit, checks: Checks
) -> None:
    assert await limit.check(OFFICE, "a key", checks.right) == "ann"
    assert await limit.check(OFFICE, None, checks.right) == "ann"
    await use_up(limit, checks)
    guesses = [begin(limit, checks.wrong, f"guess {number}") for number in range(MAX_HELD)]
    await turns()
    for _ in range(10):
        assert await limit.check(OFFICE, "a key", checks.right) == "ann"
    for unknown in ("another key", None):
        with pytest.raises(RateLimitedError):
            await limit.check(OFFICE, unknown, checks.right)
    assert await limit.check(("198.51.100.2",), "another key", checks.right) == "ann"
    checks.may_go.set()
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_what_succeeds_never_counts(limit: GuessLimit, checks: Checks) -> None:
    for _ in range(10 * RATE):
        await limit.check(OFFICE, "a key", checks.right)
    with pytest.raises(UnauthenticatedError):
        await limit.check(OFFICE, "guess", checks.wrong)
    assert checks.slept == []


async def test_guesses_at_one_key_from_many_addresses_count_together(
    limit: GuessLimit, checks: Checks
) -> None:
    key = "Bearer flt_0123456789abcdef_" + "A" * 43
    assert names_of("192.0.2.1", key) == ("192.0.2.1", "key:0123456789abcdef")
    for number in range(RATE):
        with pytest.raises(UnauthenticatedError):
            await limit.check(names_of(f"192.0.2.{number}", key), key, checks.wrong)
    checks.may_go.set()
    with pytest.raises(RateLimitedError):
        await limit.check(names_of("192.0.2.99", key), key, checks.wrong)
    assert names_of("192.0.2.1", None) == names_of("192.0.2.1", "Bearer nonsense") == OFFICE


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_a_key_is_known_by_its_id_however_the_scheme_is_written(scheme: str) -> None:
    key = "flt_0123456789abcdef_" + "A" * 43
    assert names_of("192.0.2.1", f"{scheme} {key}") == ("192.0.2.1", "key:0123456789abcdef")


async def test_a_credential_that_turns_wrong_is_not_admitted_any_more(
    limit: GuessLimit, checks: Checks
) -> None:
    assert await limit.check(OFFICE, "a key", checks.right) == "ann"
    await use_up(limit, checks)
    guesses = [begin(limit, checks.wrong, "a key") for _ in range(50)]
    await turns()
    assert len(checks.slept) <= MAX_HELD, "no more than a few wait for their answer"
    checks.may_go.set()
    await asyncio.gather(*guesses, return_exceptions=True)
    checks.count = 0
    checks.may_go.clear()
    again = [begin(limit, checks.wrong, "a key") for _ in range(50)]
    await turns()
    assert checks.count == MAX_HELD
    checks.may_go.set()
    await asyncio.gather(*again, return_exceptions=True)


async def test_a_burst_of_failures_waits_only_in_a_few_places(limit: GuessLimit, checks: Checks) -> None:
    guesses = [begin(limit, checks.wrong, f"guess {number}") for number in range(100)]
    await turns()
    assert len(checks.slept) <= MAX_HELD
    checks.may_go.set()
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_what_can_not_be_guessed_is_always_checked(limit: GuessLimit, checks: Checks) -> None:
    await use_up(limit, checks)
    guesses = [begin(limit, checks.wrong, f"guess {number}") for number in range(MAX_HELD)]
    await turns()
    for number in range(20):
        found = await limit.check(OFFICE, f"token {number}", checks.right, is_unguessable=True)
        assert found == "ann"
    with pytest.raises(RateLimitedError):
        await limit.check(OFFICE, "stale", checks.wrong, is_unguessable=True)
    checks.may_go.set()
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_names_that_a_check_adds_count_too(limit: GuessLimit, checks: Checks) -> None:
    for number in range(RATE):
        names = [f"192.0.2.{number}"]

        async def wrong(names: list[str] = names) -> str:
            names.append("key:0123")
            return await checks.wrong()

        with pytest.raises(UnauthenticatedError):
            await limit.check(names, None, wrong)
    checks.may_go.set()
    with pytest.raises(RateLimitedError):
        await limit.check(("192.0.2.99", "key:0123"), None, checks.wrong)
