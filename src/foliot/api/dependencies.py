"""Async dependencies of routes. FastAPI would run each dependency that is not async in a thread: slower."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


def made_of_query(made: type[T]) -> Callable[..., Awaitable[T]]:
    """Return a dependency for `Depends` that builds this class; its fields are query parameters."""

    async def make(**values: Any) -> T:
        return made(**values)

    make.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    return make
