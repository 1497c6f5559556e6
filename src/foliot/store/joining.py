"""The store inside a transaction of somebody else's: what it writes commits with theirs, or not at all.

Nothing is begun, committed or tried again here. What is refused is undone to where it began and leaves the
transaction as it was; on PostgreSQL that takes a savepoint. SQLite undoes the statement alone, so what may be
refused has to be the first of an act. Its savepoints are left alone: Python's driver would commit what begins
with one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import FoliotError
from foliot.store.database import Database
from foliot.store.dialect import Dialect, Pool
from foliot.store.hints import CHANNEL, Hint, LocalHints, payloads_of
from foliot.store.postgres import PostgresDialect
from foliot.store.sqlite import SqliteDialect
from foliot.timing.clock import SystemClock

T = TypeVar("T")
Open = Callable[[], Awaitable[AsyncConnection]]

SAVEPOINT = "foliot_act"
NO_SUCH_TABLE = ("42P01", "no such table")


class NotJoinableError(FoliotError):
    """Foliot can't write in this transaction."""


class JoinedDatabase(Database):
    """One connection, in a transaction that its owner ends."""

    def __init__(self, dialect: Dialect, connect: Open) -> None:
        super().__init__(dialect, {}, "the transaction", setting="its engine")
        self._connect = connect

    @asynccontextmanager
    async def read(self, pool: Pool) -> AsyncIterator[AsyncConnection]:  # noqa: ARG002
        with _explained():
            yield await self._connect()

    async def write(
        self,
        pool: Pool,  # noqa: ARG002
        work: Callable[[AsyncConnection], Awaitable[T]],
        *,
        is_single: bool = False,  # noqa: ARG002
    ) -> T:
        connection = await self._connect()
        with _explained():
            if not isinstance(self.dialect, PostgresDialect):
                return await work(connection)
            await connection.exec_driver_sql(f"SAVEPOINT {SAVEPOINT}")
            try:
                result = await work(connection)
            except BaseException:
                await connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                raise
            finally:
                await connection.exec_driver_sql(f"RELEASE SAVEPOINT {SAVEPOINT}")
            return result


class JoinedHints(LocalHints):
    """Hints that are given when the transaction commits, by PostgreSQL; elsewhere polling finds out."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[str] = []

    def send(self, hint: Hint, ids: tuple[Any, ...] = ()) -> None:
        self._waiting += payloads_of(hint, list(ids))

    async def leave(self, database: JoinedDatabase) -> None:
        """Put them into the transaction."""
        payloads, self._waiting = self._waiting, []
        if isinstance(database.dialect, PostgresDialect):
            async with database.read(Pool.API) as connection:
                for payload in payloads:
                    await connection.execute(select(func.pg_notify(CHANNEL, payload)))


class _explained:  # noqa: N801 - reads as what it does
    """Say so when the transaction is one on a database that is not Foliot's."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DBAPIError):
            said = f"{getattr(error.orig, 'sqlstate', '')} {error.orig}"
            if any(sign in said for sign in NO_SUCH_TABLE):
                raise NotJoinableError(
                    "the transaction's database has no tables of Foliot: "
                    "its engine must connect to the database of FOLIOT_DATABASE_URL"
                ) from error


_POSTGRES = PostgresDialect()
_SQLITE = SqliteDialect(SystemClock())
# Made once: statements are kept by the dialect that they were built for.


def dialect_of(connection: AsyncConnection | Connection) -> Dialect:
    """Of the transaction's database, whatever driver its owner has chosen. Raises NotJoinableError."""
    plain = connection.sync_connection if isinstance(connection, AsyncConnection) else connection
    if plain is not None and plain.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        raise NotJoinableError("the connection commits every statement by itself: begin a transaction on it")
    match connection.dialect.name:
        case "postgresql":
            return _POSTGRES
        case "sqlite":
            return _SQLITE
        case other:
            raise NotJoinableError(
                f"the transaction is one of {other}; Foliot writes to PostgreSQL and SQLite"
            )


class _AwaitedConnection:
    """A plain connection in the place of an asynchronous one: its answers are there when they are awaited."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, *arguments: Any) -> Any:
        return self._connection.execute(*arguments)

    async def exec_driver_sql(self, statement: str) -> Any:
        return self._connection.exec_driver_sql(statement)


def awaited(connection: Connection) -> AsyncConnection:
    return cast("AsyncConnection", _AwaitedConnection(connection))
