"""An event loop on virtual time. It never waits, opens nothing, and runs ready callbacks in order.

Sleeps and timeouts end when the clock is advanced. Each task belongs to the process that was current when it
was created, so that a crash can end all of them.
"""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from foliot.timing.clock import VirtualClock


class Mortal(Protocol):
    """Something that owns tasks, which end when it dies."""

    tasks: set[asyncio.Task[Any]]


living: ContextVar[Mortal | None] = ContextVar("living", default=None)
"""The process that the current code runs for."""


class _Nothing:
    """A selector that watches nothing, and raises instead of waiting."""

    def select(self, timeout: float | None) -> Sequence[Any]:
        if timeout is None or timeout > 0:
            raise RuntimeError("everything waits, and nobody moves the clock")
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._virtual = clock
        self._selector = _Nothing()
        self.set_task_factory(_of_the_living)

    def time(self) -> float:
        return self._virtual.monotonic()

    @property
    def next_timer(self) -> float | None:
        """Time of the earliest timer. None: no timer is set."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((each.when() for each in timers if not each.cancelled()), default=None)

    async def rest(self) -> None:
        """Return when all other tasks wait for a database call or for the clock."""
        await asyncio.sleep(0)
        while self._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)

    def _process_events(self, event_list: Sequence[Any]) -> None:
        """Do nothing: there are no events."""

    def _write_to_self(self) -> None:
        """Do nothing: there is no other thread."""


def _of_the_living(loop: asyncio.AbstractEventLoop, coro: Any, /, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    life = living.get()
    if life is not None:
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
    return task
