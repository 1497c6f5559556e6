"""An event loop on virtual time: it never waits, opens nothing, and runs what is ready in the order it came.

What sleeps or times out is woken when somebody moves the clock. Every task belongs to the life that was
current when it was made, so that a crash can end them all.
"""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from foliot.timing.clock import VirtualClock


class Mortal(Protocol):
    """Something whose tasks end with it."""

    tasks: set[asyncio.Task[Any]]


living: ContextVar[Mortal | None] = ContextVar("living", default=None)
"""On whose behalf the code runs."""


class _Nothing:
    """A selector that watches nothing and refuses to wait for it."""

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
        """When the first of those that sleep wants to be woken."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((each.when() for each in timers if not each.cancelled()), default=None)

    async def rest(self) -> None:
        """Return when everything else waits: for a call to the database, or for time to pass."""
        await asyncio.sleep(0)
        while self._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)

    def _process_events(self, event_list: Sequence[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody is on another thread."""


def _of_the_living(loop: asyncio.AbstractEventLoop, coro: Any, /, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    life = living.get()
    if life is not None:
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
    return task
