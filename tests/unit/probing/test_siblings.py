"""Several processes that serve one address tell all their metrics, whichever of them is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from tests.exposition import read_exposition

from foliot.probing.page import MAX_REST_S
from foliot.probing.siblings import Place, SharedPage, make_places
from foliot.timing.clock import VirtualClock

PLAIN = ""
OPEN = "application/openmetrics-text;version=1.0.0"


class Process(NamedTuple):
    page: SharedPage
    requests: Counter
    place: Place

    async def shown(self) -> dict[tuple[str, ...], float]:
        content, _ = await self.page.answer(PLAIN)
        return read_exposition(content.decode())["requests_total"].samples


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


def make(place: Place, clock: VirtualClock) -> Process:
    registry = CollectorRegistry()
    requests = Counter("requests", "Requests", ["method"], registry=registry)
    Gauge("lag", "How far behind", registry=registry).set(float("nan"))
    Histogram("seconds", "How long", buckets=[1, 2], registry=registry).observe(1.5)
    return Process(SharedPage(registry, place, clock, limit_s=5), requests, place)


@pytest.fixture
async def processes(clock: VirtualClock) -> AsyncIterator[list[Process]]:
    places = make_places(3)
    made = [make(place, clock) for place in places]
    async with AsyncExitStack() as stack:
        for each in made:
            await stack.enter_async_context(each.page.shared())
        yield made
    for place in places:
        place.listener.close()


async def test_whoever_is_asked_tells_of_all(processes: list[Process]) -> None:
    for number, each in enumerate(processes, 1):
        each.requests.labels("GET").inc(number)
    for each in processes:
        assert await each.shown() == {("GET", "1"): 1, ("GET", "2"): 2, ("GET", "3"): 3}


@pytest.mark.parametrize("accept", [PLAIN, OPEN])
async def test_each_metric_is_one_group_of_lines(processes: list[Process], accept: str) -> None:
    content, _ = await processes[0].page.answer(accept)
    lines = content.decode().splitlines()
    for name in ("requests", "lag", "seconds"):
        kinds = [line for line in lines if line.startswith("# TYPE ") and line.split()[2].startswith(name)]
        assert len({line.split()[2] for line in kinds}) == len(kinds)
    assert 'lag{process="2"} NaN' in lines
    assert 'seconds_bucket{le="2.0",process="3"} 1.0' in lines


async def test_the_others_are_asked_no_more_than_once_a_second(
    processes: list[Process], clock: VirtualClock
) -> None:
    first, second, _ = processes
    second.requests.labels("GET").inc()
    assert (await first.shown())["GET", "2"] == 1
    second.requests.labels("GET").inc()
    assert (await first.shown())["GET", "2"] == 1
    clock.advance(MAX_REST_S)
    assert (await first.shown())["GET", "2"] == 2


async def test_one_that_is_gone_is_left_out(clock: VirtualClock) -> None:
    places = make_places(2)
    first, second = (make(place, clock) for place in places)
    first.requests.labels("GET").inc()
    second.requests.labels("GET").inc()
    places[1].listener.close()
    async with first.page.shared():
        assert await first.shown() == {("GET", "1"): 1}


async def test_one_that_does_not_answer_is_not_waited_for(clock: VirtualClock) -> None:
    places = make_places(2)
    first = make(places[0], clock)._replace(page=SharedPage(CollectorRegistry(), places[0], clock, limit_s=0))
    async with first.page.shared():
        content, _ = await first.page.answer(PLAIN)
    assert content == b""
    places[1].listener.close()


async def test_the_next_in_a_place_goes_on_with_its_number(clock: VirtualClock) -> None:
    places = make_places(2)
    first = make(places[0], clock)
    async with first.page.shared():
        for count in (5, 1):
            successor = make(places[1]._replace(listener=places[1].listener.dup()), clock)
            successor.requests.labels("GET").inc(count)
            async with successor.page.shared():
                clock.advance(MAX_REST_S)
                assert await first.shown() == {("GET", "2"): count}
    places[1].listener.close()


async def test_nobody_else_is_told_anything(processes: list[Process]) -> None:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*processes[0].place.listener.getsockname())
        writer.write(b"x" * 32)
        assert await reader.read() == b""
        writer.close()
