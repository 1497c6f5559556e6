"""Connections and transactions, the same for both databases.

A transaction that fails for a passing reason (deadlock, serialization failure, lock timeout, a busy SQLite
file) was rolled back whole, so it is run again, a bounded number of times. One whose outcome is not known
(the connection broke in COMMIT) is never run again here: whoever asked has to look what became of it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from foliot.model.errors import DatabaseFullError, DatabaseUnreachableError, UnstorableError
from foliot.store.dialect import Dialect, Limit, Pool
from foliot.store.reading import Source, source

T = TypeVar("T")

TRANSIENT_TRIES = 6
TRANSIENT_PAUSE_S = 0.02


class Database:
    is_joined = False
    """Whether its transactions are an application's own, and may stay open for as long as that likes."""

    def __init__(
        self,
        dialect: Dialect,
        engines: Mapping[Pool, AsyncEngine],
        url: str,
        limits: Mapping[Pool, Limit] | None = None,
        *,
        setting: str = "FOLIOT_DATABASE_URL",
    ) -> None:
        """`setting` is what names it, for those who have to correct it."""
        self.dialect = dialect
        self.url = url
        """Where it is, without the password."""
        self.replica: Database | None = None
        """What `reading_from` may name instead, for reads of the API."""
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
        """A connection for reading: each statement sees what is committed when it starts."""
        if self.replica is not None and pool is Pool.API and source() is Source.REPLICA:
            try:
                async with self.replica.read(pool) as connection:
                    yield connection
            except Exception as error:
                # A statement that stood in the way of what the primary had done meanwhile.
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

    async def write(
        self, pool: Pool, work: Callable[[AsyncConnection], Awaitable[T]], *, is_single: bool = False
    ) -> T:
        """Run the work in a transaction, again if it fails for a passing reason.

        Work that is a single statement is a transaction by itself, where the database has it so.
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
        """The store's clock."""
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
