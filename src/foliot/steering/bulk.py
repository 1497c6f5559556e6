"""One act on many schedules or executions: each by itself, a few at a time, and what became of each told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from foliot.model.errors import DatabaseUnreachableError, FoliotError

AT_ONCE = 4
"""Fewer than the API has connections: others want to be served meanwhile."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BulkResult(Generic[T]):
    item: T
    error: FoliotError | None = None


async def on_each(items: Sequence[T], act: Callable[[T], Awaitable[object]]) -> list[BulkResult[T]]:
    """Act on each, in order as they begin. One that is refused stops no other; a database that is gone stops
    all."""
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
