"""A loop steps its service for ever, and knows for how long that has come to nothing."""

import asyncio
import re
from datetime import UTC, datetime

import pytest

from foliot.model.instance_events import ServiceFailed, ServiceRecovered
from foliot.service import Loop, Wake
from foliot.testing.app import Recorder
from foliot.timing.clock import VirtualClock


class Stage:
    """A service that does as it is told, and its loop."""

    name = "staged"

    def __init__(self) -> None:
        self.wake = Wake()
        self.clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self.recorder = Recorder()
        self.loop = Loop(self, self.recorder, self.clock)
        self.fails = False
        self.failure: Exception = RuntimeError("told to")
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def step(self) -> float | None:
        self.clock.advance(1)
        await self.may_end.wait()
        if self.fails:
            raise self.failure
        return 60.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_service_that_rests_is_not_stuck_however_long(stage: Stage) -> None:
    assert stage.loop.stuck_s == 0
    assert await stage.loop.turn() == 60.0
    stage.clock.advance(1000)
    assert stage.loop.stuck_s == 0


async def test_a_step_that_does_not_end_is_stuck_since_it_began(stage: Stage) -> None:
    stage.may_end.clear()
    turn = asyncio.create_task(stage.loop.turn())
    await asyncio.sleep(0)
    stage.clock.advance(7)
    assert stage.loop.stuck_s == 8
    stage.may_end.set()
    await turn
    assert stage.loop.stuck_s == 0


async def test_steps_that_fail_are_stuck_since_the_first_of_them_until_one_succeeds(stage: Stage) -> None:
    await stage.loop.turn()
    stage.fails = True
    await stage.loop.turn()
    stage.clock.advance(10)
    await stage.loop.turn()
    assert stage.loop.stuck_s == 12
    stage.fails = False
    await stage.loop.turn()
    assert stage.loop.stuck_s == 0
    assert [type(event) for event in stage.recorder.events] == [
        ServiceFailed,
        ServiceFailed,
        ServiceRecovered,
    ]


async def test_a_failure_is_told_in_its_own_words(stage: Stage) -> None:
    stage.fails = True
    await stage.loop.turn()
    [failed] = [event for event in stage.recorder.events if isinstance(event, ServiceFailed)]
    assert failed.error == "RuntimeError: told to"


async def test_a_failure_without_words_is_told_by_where_it_happened(stage: Stage) -> None:
    stage.fails, stage.failure = True, TimeoutError()
    await stage.loop.turn()
    [failed] = [event for event in stage.recorder.events if isinstance(event, ServiceFailed)]
    assert re.fullmatch(r"TimeoutError in step \(test_service\.py, line \d+\)", failed.error)


async def test_of_a_failure_within_a_library_the_last_of_our_own_lines_is_told(stage: Stage) -> None:
    async def wait() -> float | None:
        # As asyncio's timeout is raised within asyncio.
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return None

    stage.step = wait  # type: ignore[method-assign]
    await stage.loop.turn()
    [failed] = [event for event in stage.recorder.events if isinstance(event, ServiceFailed)]
    assert failed.error.startswith("TimeoutError in wait (test_service.py, line ")
