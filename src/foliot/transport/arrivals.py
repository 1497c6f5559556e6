"""Buffer for messages that a broker has pushed, until they are received."""

import asyncio
from collections.abc import Awaitable, Callable

from foliot.transport.broker_names import by_urgency
from foliot.transport.transport_protocol import ExecutionDelivery

LEFT_LYING_S = 0.3


class Arrivals:
    """Holds pushed messages for the next receive. If there is none for a while, calls `rest` to return them.

    A worker without free slots does not receive. Messages that were pushed to it must not wait until it does.
    """

    def __init__(self, rest: Callable[[], Awaitable[None]]) -> None:
        self._rest = rest
        self._held: list[ExecutionDelivery] = []
        self._came = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._resting: asyncio.Task[None] | None = None

    def put(self, delivery: ExecutionDelivery) -> None:
        self._held.append(delivery)
        self._came.set()

    async def open(self) -> None:
        """Begin a receive: messages are not returned meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._resting is not None:
            await asyncio.wait({self._resting})

    def leave(self) -> None:
        """End a receive: messages are returned if the next one does not begin soon."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LEFT_LYING_S, self._begin_rest)

    def take(self, limit: int) -> list[ExecutionDelivery]:
        held = by_urgency(self._held)
        self._held = held[limit:]
        if not self._held:
            self._came.clear()
        return held[:limit]

    @property
    def count(self) -> int:
        return len(self._held)

    async def wait(self, seconds: float) -> None:
        """Wait until a message has arrived, at most this many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Drop all held messages: the connection is gone, so the broker delivers them again."""
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
