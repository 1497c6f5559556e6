"""Calls in threads that nobody has to wait for."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_thread(call: Callable[[], Result], *, name: str) -> asyncio.Future[Result]:
    """What a call returns or raises, from a thread of its own; dropped if nobody waits any more.

    No executor: its threads are joined when the interpreter exits, so that one stuck call would keep the
    process from ever ending, and each stuck call is a thread less for all others. A new thread takes some
    50 µs more than one of an executor: 0.24 ms for a call instead of 0.19.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            told = partial(settle_with, answer.set_result, context.run(call))
        except BaseException as failure:
            told = partial(settle_with, answer.set_exception, failure)
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is nobody to tell
            loop.call_soon_threadsafe(told)

    def settle_with(settle: Callable[[Any], None], outcome: Any) -> None:
        if not answer.done():
            settle(outcome)

    threading.Thread(target=work, name=name, daemon=True).start()
    return answer
