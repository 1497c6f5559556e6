"""Cache a result for a short time, and compute it once for all concurrent callers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from foliot.timing.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    def __init__(self, make: Callable[[], Awaitable[T]], seconds: float, clock: Clock) -> None:
        """Call `make` at most once per `seconds`, and never concurrently."""
        self._make = make
        self._seconds = seconds
        self._clock = clock
        self._task: asyncio.Task[T] | None = None
        self._made_at = float("-inf")

    async def get(self) -> T:
        task = self._task
        now = self._clock.monotonic()
        if task is None or (task.done() and now - self._made_at >= self._seconds):
            task = self._task = asyncio.create_task(self._run(), name="readiness")
        # A cancelled caller must not cancel the task that others wait for.
        return await asyncio.shield(task)

    async def _run(self) -> T:
        try:
            return await self._make()
        finally:
            self._made_at = self._clock.monotonic()
