"""Dependencies of routes without a thread: FastAPI calls whatever is not async in one, a hop for each."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


def made_of_query(made: type[T]) -> Callable[..., Awaitable[T]]:
    """For `Depends`: an object of this class, whose fields are parameters of the request."""

    async def make(**values: Any) -> T:
        return made(**values)

    make.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    return make
