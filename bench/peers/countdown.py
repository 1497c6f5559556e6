"""Signals when a number of jobs has run."""

import asyncio


class Countdown:
    """A counter that each job decrements, in the same event loop that waits for zero."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._is_over = asyncio.Event()

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._is_over.set()

    async def wait(self) -> None:
        await self._is_over.wait()
