"""Tells when so many jobs have run."""

import asyncio


class Countdown:
    """Counted down by the job itself, in the event loop that waits for the end."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._is_over = asyncio.Event()

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._is_over.set()

    async def wait(self) -> None:
        await self._is_over.wait()
