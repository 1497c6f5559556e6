"""What a broker has pushed waits for who receives, and goes back when nobody does."""

import asyncio
from uuid import uuid4

import pytest

from foliot.model.policy import Priority
from foliot.transport import arrivals
from foliot.transport.arrivals import Arrivals
from foliot.transport.transport_protocol import ExecutionDelivery, ExecutionMessage


def delivery(priority: Priority = Priority.HIGH) -> ExecutionDelivery:
    return ExecutionDelivery(ExecutionMessage(uuid4(), "default", priority))


@pytest.fixture
def rested() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def held(rested: asyncio.Event, monkeypatch: pytest.MonkeyPatch) -> Arrivals:
    monkeypatch.setattr(arrivals, "LEFT_LYING_S", 0.01)

    async def rest() -> None:
        rested.set()

    return Arrivals(rest)


async def test_the_most_urgent_is_taken_first_and_no_more_than_asked_for(held: Arrivals) -> None:
    low, high, medium = (delivery(each) for each in (Priority.LOW, Priority.HIGH, Priority.MEDIUM))
    for each in (low, high, medium):
        held.put(each)
    assert held.take(2) == [high, medium]
    assert held.take(2) == [low]
    assert held.take(2) == []


async def test_waiting_ends_when_something_comes(held: Arrivals) -> None:
    waiting = asyncio.create_task(held.wait(60))
    held.put(delivery())
    async with asyncio.timeout(5):
        await waiting
    held.take(1)
    async with asyncio.timeout(5):
        await held.wait(0.01)


async def test_what_nobody_receives_is_given_back(held: Arrivals, rested: asyncio.Event) -> None:
    held.leave()
    async with asyncio.timeout(5):
        await rested.wait()
    await held.close()


async def test_nothing_is_given_back_while_somebody_receives(held: Arrivals, rested: asyncio.Event) -> None:
    held.leave()
    await held.open()
    # Far longer than what was to be waited for.
    await held.wait(0.2)
    assert not rested.is_set()


async def test_a_broker_that_is_away_when_something_is_given_back_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrivals, "LEFT_LYING_S", 0.0)
    asked = asyncio.Event()

    async def fail() -> None:
        asked.set()
        raise OSError("gone")

    failing = Arrivals(fail)
    failing.leave()
    async with asyncio.timeout(5):
        await asked.wait()
    await failing.open()
    failing.put(delivery())
    assert failing.count == 1
