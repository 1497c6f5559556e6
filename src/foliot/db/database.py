"""Connections and transactions, for PostgreSQL and SQLite alike.

A transaction that fails with a transient error (deadlock, serialization failure, lock timeout, a busy SQLite
file) was rolled back completely, so it is retried a limited number of times. A transaction with an unknown
outcome (the connection broke in COMMIT) is never retried here: the caller must check what happened.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import CursorResult, Executable, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from foliot.db.dialect import Dialect, Limit, Pool
from foliot.db.read_routing import Source, source
from foliot.model.errors import DatabaseFullError, DatabaseUnreachableError, UnstorableError

T = TypeVar("T")

TRANSIENT_TRIES = 6
TRANSIENT_PAUSE_S = 0.02


class Database:
    is_joined = False
    """Whether it writes in transactions of the application, which may stay open for any time."""

    def __init__(
        self,
        dialect: Dialect,
        engines: Mapping[Pool, AsyncEngine],
        url: str,
        limits: Mapping[Pool, Limit] | None = None,
        *,
        setting: str = "FOLIOT_DATABASE_URL",
    ) -> None:
        """`setting` is the setting that holds the URL; error messages name it."""
        self.dialect = dialect
        self.url = url
        """The URL of the database, without the password."""
        self.replica: Database | None = None
        """Used for reads of the API inside `reading_from(Source.REPLICA)`; None: there is no replica."""
        self._engines = engines
        self._setting = setting
        self._limits = limits or {}
        self._closers: list[Callable[[], None]] = []

    def on_close(self, closer: Callable[[], None]) -> None:
        self._closers.append(closer)

    def limit(self, pool: Pool) -> Limit | None:
        return self._limits.get(pool)

    def engine(self, pool: Pool) -> AsyncEngine:
        return self._engines[pool]

    @asynccontextmanager
    async def read(self, pool: Pool) -> AsyncIterator[AsyncConnection]:
        """Open a connection for reading. Each statement sees what is committed when it starts."""
        if self.replica is not None and pool is Pool.API and source() is Source.REPLICA:
            try:
                async with self.replica.read(pool) as connection:
                    yield connection
            except Exception as error:
                # The replica cancelled a statement that conflicted with changes from the primary.
                if self.dialect.is_transient(error):
                    raise DatabaseUnreachableError(f"{self.replica.url} broke off a statement") from error
                raise
            return
        try:
            async with self._engines[pool].connect() as connection:
                yield await connection.execution_options(isolation_level="AUTOCOMMIT")
        except Exception as error:
            self._explain(error)
            raise

    async def fetch(
        self, pool: Pool, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """Read with one statement. The result has all rows, so the connection is free again."""
        async with self.read(pool) as connection:
            return await connection.execute(statement, values)

    async def write(
        self, pool: Pool, work: Callable[[AsyncConnection], Awaitable[T]], *, is_single: bool = False
    ) -> T:
        """Run the work in a transaction; retry it after a transient error.

        `is_single`: the work is one statement, so BEGIN and COMMIT are left out where the dialect allows it.
        """
        for attempt in range(1, TRANSIENT_TRIES + 1):
            try:
                if is_single and self.dialect.commits_single:
                    async with self._engines[pool].connect() as connection:
                        return await work(await connection.execution_options(isolation_level="AUTOCOMMIT"))
                async with self.dialect.begin(self._engines[pool]) as connection:
                    if pool in self._limits:
                        await self.dialect.limit(connection, self._limits[pool])
                    return await work(connection)
            except Exception as error:
                if attempt == TRANSIENT_TRIES or not self.dialect.is_transient(error):
                    self._explain(error)
                    raise
            pause_s = TRANSIENT_PAUSE_S * 2**attempt
            await asyncio.sleep(pause_s * (0.5 + random.random()))  # noqa: S311 - spreads load, hides nothing
        raise AssertionError("the last try returns or raises")

    async def now(self, pool: Pool = Pool.LEASE) -> datetime:
        """Return the time by the store's clock."""
        async with self.read(pool) as connection:
            instant: datetime = (await connection.execute(select(self.dialect.now()))).scalar_one()
            return instant

    async def close(self) -> None:
        if self.replica is not None:
            await self.replica.close()
        for engine in self._engines.values():
            await engine.dispose()
        for closer in self._closers:
            closer()

    def _explain(self, error: BaseException) -> None:
        if self.dialect.is_unstorable(error):
            raise UnstorableError(f"the database can't hold a value: {type(error).__name__}") from error
        if self.dialect.is_full(error):
            raise DatabaseFullError(
                f"the disk of the database at {self.url} is full; free some of it"
            ) from error
        if self.dialect.is_unreachable(error):
            reason = str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__]
            raise DatabaseUnreachableError(
                f"the database at {self.url} can't be reached: {reason[0]}; "
                f"check that it runs and that {self._setting} is right"
            ) from error
