"""A result that is kept for a moment, and made once for all who wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from foliot.timing.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    def __init__(self, make: Callable[[], Awaitable[T]], seconds: float, clock: Clock) -> None:
        """`make` is called at most once per so many seconds, and never twice at a time."""
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
        # A caller that goes away must not stop what others wait for.
        return await asyncio.shield(task)

    async def _run(self) -> T:
        try:
            return await self._make()
        finally:
            self._made_at = self._clock.monotonic()
