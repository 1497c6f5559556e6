"""Task functions in threads: one that is stuck harms nobody else."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.kinds.function_target import FunctionRunner, RemoteFailedError, TaskRegistry, describe_task
from foliot.kinds.target_protocol import Assignment, Fire
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import ScheduleSpec

FIRE_TS = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAIT_S = 10.0
"""How long a test waits for what should be there at once."""
USER = contextvars.ContextVar("USER", default="nobody")


def runner_of(*functions: Callable[..., Any]) -> FunctionRunner:
    registry = TaskRegistry()
    for function in functions:
        registry.add(describe_task(function))
    return FunctionRunner(registry)


async def run(runner: FunctionRunner, name: str) -> Any:
    trigger = {"kind": "interval", "seconds": 1}
    spec = ScheduleSpec.parse(
        {"name": "one", "trigger": trigger, "target": {"kind": "function", "name": name}}
    )
    fire = Fire(new_id(), new_id(), "one", FIRE_TS, 1)
    async with asyncio.timeout(WAIT_S):
        return await runner.run(Assignment(fire, spec, {}, DEFAULT_HOST_ID))


class Gate:
    """A function that is stuck until it is let go, and then ends in its own way."""

    def __init__(self, end: Callable[[], Any]) -> None:
        self._end = end
        self._begun: asyncio.Queue[threading.Thread] = asyncio.Queue()
        self._open = threading.Event()
        self._threads: list[threading.Thread] = []

    def function(self) -> Callable[[], Any]:
        loop = asyncio.get_running_loop()

        def stuck() -> Any:
            loop.call_soon_threadsafe(self._begun.put_nowait, threading.current_thread())
            self._open.wait()
            return self._end()

        return stuck

    async def abandoned(self, runner: FunctionRunner) -> None:
        """One more is stuck, and nobody waits for it."""
        task = asyncio.create_task(run(runner, "stuck"))
        async with asyncio.timeout(WAIT_S):
            self._threads.append(await self._begun.get())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def let_go(self) -> None:
        """Returns when all of them have ended."""
        self._open.set()
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()


def refuses() -> None:
    raise ValueError("too late")


@pytest.fixture(params=[lambda: "too late", refuses], ids=["returns", "raises"])
def gate(request: pytest.FixtureRequest) -> Iterator[Gate]:
    made = Gate(request.param)
    yield made
    made.let_go()


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What threads have raised with nobody to hear it."""
    raised: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: raised.append(told.exc_value))
    return raised


async def test_stuck_functions_take_no_thread_from_others(gate: Gate) -> None:
    runner = runner_of(gate.function(), well)
    for _ in range(4):
        await gate.abandoned(runner)
    assert await run(runner, "well") == "done"


def well() -> str:
    return "done"


async def test_the_end_of_a_function_that_nobody_waits_for_is_dropped(
    gate: Gate, unheard: list[BaseException | None]
) -> None:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, told: complaints.append(told))
    await gate.abandoned(runner_of(gate.function()))
    gate.let_go()
    heard = asyncio.Event()
    loop.call_soon(heard.set)  # after what the thread has left there
    await heard.wait()
    assert (complaints, unheard) == ([], [])


def test_a_function_that_outlives_its_loop_ends_in_silence(
    gate: Gate, unheard: list[BaseException | None]
) -> None:
    async def abandon() -> None:
        await gate.abandoned(runner_of(gate.function()))

    asyncio.run(abandon())
    gate.let_go()
    assert unheard == []


SCRIPT = """
import asyncio, threading
from tests.integration.test_threads import run, runner_of

def stuck():
    print("stuck", flush=True)
    threading.Event().wait()

async def main():
    try:
        async with asyncio.timeout(0.2):
            await run(runner_of(stuck), "stuck")
    except TimeoutError:
        print("over its time")

asyncio.run(main())
"""


def test_a_process_ends_although_a_function_is_stuck() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30)
    assert done.stdout == "stuck\nover its time\n", done.stderr


async def test_a_function_sees_the_context_of_its_attempt() -> None:
    def user() -> str:
        return USER.get()

    USER.set("somebody")
    assert await run(runner_of(user), "user") == "somebody"


@pytest.mark.parametrize("leaving", [SystemExit(3), KeyboardInterrupt(), StopIteration(7)])
async def test_whatever_a_function_raises_is_the_end_of_its_attempt(leaving: BaseException) -> None:
    def leave() -> None:
        raise leaving

    with pytest.raises(RemoteFailedError, match=f"^{type(leaving).__name__}"):
        await run(runner_of(leave), "leave")
