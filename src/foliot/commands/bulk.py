"""Run one command on many schedules or executions, a few at a time, with a result for each item."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from foliot.model.errors import DatabaseUnreachableError, FoliotError

AT_ONCE = 4
"""Maximum number of items in progress. Fewer than the API's connections, to leave some for other requests."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BulkResult(Generic[T]):
    item: T
    error: FoliotError | None = None


async def on_each(items: Sequence[T], act: Callable[[T], Awaitable[object]]) -> list[BulkResult[T]]:
    """Call `act` for each item, started in order. Return the results in the same order.

    An item that is refused does not stop the others. An unreachable database stops all.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> BulkResult[T]:
        async with turns:
            try:
                await act(item)
            except DatabaseUnreachableError:
                raise
            except FoliotError as error:
                return BulkResult(item, error)
            return BulkResult(item)

    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
