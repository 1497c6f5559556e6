"""Calls of libraries that block, run by threads that stay.

What a library keeps for each thread, such as a connection, is then made once. They are daemons and no
executor's: those are joined when the interpreter exits, and one call that never returns would keep the
process from ever ending.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class Errands:
    """A few threads that make calls, each one after the other, in the order in which they were asked for."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._name = name
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def do(self, call: Callable[[], Result]) -> asyncio.Future[Result]:
        """What the call returns or raises. Cancelled before it began, it is not made; later, it is lost."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()

        def work() -> None:
            if answer.cancelled():
                return
            try:
                told = partial(settle_with, answer.set_result, call())
            except BaseException as failure:
                told = partial(settle_with, answer.set_exception, failure)
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is nobody to tell
                loop.call_soon_threadsafe(told)

        def settle_with(settle: Callable[[Any], None], outcome: Any) -> None:
            if not answer.done():
                settle(outcome)

        self._calls.put(work)
        if len(self._threads) < self._most:
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return answer

    def do_later(self, call: Callable[[], None]) -> None:
        """Nobody hears what became of it, and nobody may want to: not made where no thread runs."""
        if self._threads:
            self._calls.put(partial(_quietly, call))

    def close(self) -> None:
        """Let the threads end when they have made the calls that wait; waits for none of them."""
        for _ in self._threads:
            self._calls.put(None)
        self._threads = []

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
            # Else it, and what it holds, would be kept until the next one comes.
            del work


def _quietly(call: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        call()
