"""Tickets that a broker has pushed to us, until somebody receives them."""

import asyncio
from collections.abc import Awaitable, Callable

from foliot.transport.places import by_urgency
from foliot.transport.protocol import ReceivedTicket

LEFT_LYING_S = 0.3


class Arrivals:
    """Holds them for the next to receive. If nobody does for a while, `rest` is called to give them back.

    A worker without room receives nothing; what was pushed to it must not wait until it has.
    """

    def __init__(self, rest: Callable[[], Awaitable[None]]) -> None:
        self._rest = rest
        self._held: list[ReceivedTicket] = []
        self._came = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._resting: asyncio.Task[None] | None = None

    def put(self, delivery: ReceivedTicket) -> None:
        self._held.append(delivery)
        self._came.set()

    async def open(self) -> None:
        """Somebody receives: nothing is given back meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._resting is not None:
            await asyncio.wait({self._resting})

    def leave(self) -> None:
        """Nobody receives at the moment."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LEFT_LYING_S, self._begin_rest)

    def take(self, most: int) -> list[ReceivedTicket]:
        held = by_urgency(self._held)
        self._held = held[most:]
        if not self._held:
            self._came.clear()
        return held[:most]

    @property
    def count(self) -> int:
        return len(self._held)

    async def wait(self, seconds: float) -> None:
        """Until one has come, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Forget what is held: it went with the connection."""
        self._held = []
        self._came.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._resting is not None:
            await asyncio.wait({self._resting})

    def _begin_rest(self) -> None:
        self._timer = None
        self._resting = asyncio.create_task(self._give_up())

    async def _give_up(self) -> None:
        try:
            await self._rest()
        except Exception:  # noqa: S110 - the broker is away, and gives them to others by itself
            pass
        finally:
            self._resting = None
