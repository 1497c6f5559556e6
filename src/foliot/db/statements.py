"""Base class of everything that runs statements on a database."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool

P = ParamSpec("P")
S = TypeVar("S", bound="Statements")
T = TypeVar("T")


class Statements:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect


def transaction(
    pool: Pool,
) -> Callable[
    [Callable[Concatenate[S, AsyncConnection, P], Awaitable[T]]],
    Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
]:
    """Run a method in a transaction, and again after a transient error (see `Database.write`).

    The method's first parameter is the connection. Callers leave it out.
    """

    def decorate(
        method: Callable[Concatenate[S, AsyncConnection, P], Awaitable[T]],
    ) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
        @wraps(method)
        async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await self._database.write(
                pool, lambda connection: method(self, connection, *args, **kwargs)
            )

        return run

    return decorate
