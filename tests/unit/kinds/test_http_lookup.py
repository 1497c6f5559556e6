"""How names of agents are looked up: a name that nobody answers for is nobody else's trouble."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from foliot.kinds.http_connections import SystemLookup

WAIT_S = 10.0
"""How long a test waits for what should be there at once."""


class Resolver:
    """A system's resolver that does not answer for `dead` names until it is let go."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answers = threading.Event()

    def __call__(self, host: str, port: int, **_options: Any) -> list[Any]:
        self.asked[host] += 1
        if host.startswith("dead"):
            self.answers.wait()
        if host.endswith(".none"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))] * 2


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.answers.set()


async def addresses(lookup: SystemLookup, host: str) -> list[str]:
    async with asyncio.timeout(WAIT_S):
        return await lookup(host, 443)


async def given_up(lookup: SystemLookup, *hosts: str) -> None:
    """Lookups whose callers have gone."""
    tasks = [asyncio.create_task(addresses(lookup, host)) for host in hosts]
    await asyncio.sleep(0)  # they have asked
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_names_that_nobody_answers_for_keep_no_other_waiting(resolver: Resolver) -> None:
    lookup = SystemLookup()
    # More than the event loop's own executor has threads.
    await given_up(lookup, *(f"dead{number}.example" for number in range(40)))
    assert await addresses(lookup, "well.example") == ["192.0.2.1"]
    assert resolver.asked["well.example"] == 1


async def test_a_name_is_asked_for_once_however_many_wait(resolver: Resolver) -> None:
    lookup = SystemLookup()
    await given_up(lookup, *["dead.example"] * 20)
    waiting = asyncio.create_task(addresses(lookup, "dead.example"))
    await asyncio.sleep(0)
    resolver.answers.set()
    assert await waiting == ["192.0.2.1"]
    assert resolver.asked == {"dead.example": 1}


async def test_an_answer_is_not_kept(resolver: Resolver) -> None:
    lookup = SystemLookup()
    for count in (1, 2):
        assert await addresses(lookup, "well.example") == ["192.0.2.1"]
        assert resolver.asked["well.example"] == count


async def test_a_failure_is_told_to_all_who_wait_and_to_nobody_else(resolver: Resolver) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: complaints.append(told))
    lookup = SystemLookup()
    await given_up(lookup, "dead.none")
    waiting = [asyncio.create_task(addresses(lookup, "dead.none")) for _ in range(2)]
    await asyncio.sleep(0)
    resolver.answers.set()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in told] == [socket.gaierror] * 2
    assert complaints == []
