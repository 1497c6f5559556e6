"""The store inside a transaction of the caller: its writes commit or roll back with the caller's.

Nothing is begun, committed or retried here. If an operation is refused, its writes are undone and the
transaction stays usable. On PostgreSQL that takes a savepoint around the operation and its reads, because any
failed statement would abort the transaction. SQLite undoes only the failed statement, so a statement that may
be refused has to be the first of an operation. SQLite savepoints are not used: Python's driver would commit a
transaction that begins with one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Dialect, Pool
from foliot.db.hints import CHANNEL, Hint, LocalHints, payloads_of
from foliot.db.postgres import PostgresDialect
from foliot.db.sqlite import SqliteDialect
from foliot.model.errors import FoliotError, UnstorableError
from foliot.timing.clock import SystemClock

T = TypeVar("T")
Open = Callable[[], Awaitable[AsyncConnection]]

SAVEPOINT = "foliot_act"
NO_SUCH_TABLE = ("42P01", "no such table")


class NotJoinableError(FoliotError):
    """Foliot can't write in this transaction."""


class JoinedDatabase(Database):
    """A database with one connection, in a transaction that the caller ends."""

    is_joined = True

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
        with _explained():
            return await work(await self._connect())

    async def act(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run an operation completely or not at all. Raises UnstorableError, NotJoinableError."""
        try:
            return await (self._undone(work) if isinstance(self.dialect, PostgresDialect) else work())
        except Exception as error:
            if self.dialect.is_unstorable(error):
                raise UnstorableError(f"the database can't hold a value: {type(error).__name__}") from error
            raise

    async def _undone(self, work: Callable[[], Awaitable[T]]) -> T:
        connection = await self._connect()
        await connection.exec_driver_sql(f"SAVEPOINT {SAVEPOINT}")
        try:
            result = await work()
        except BaseException:
            # SQLAlchemy discards a connection that broke or was cancelled within a statement. Its error here
            # would hide the cause: a cancelled task has to end as cancelled.
            with suppress(SQLAlchemyError):
                await connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                await connection.exec_driver_sql(f"RELEASE SAVEPOINT {SAVEPOINT}")
            raise
        await connection.exec_driver_sql(f"RELEASE SAVEPOINT {SAVEPOINT}")
        return result


class JoinedHints(LocalHints):
    """Hints that PostgreSQL delivers when the transaction commits. On SQLite polling replaces them."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[str] = []

    def send(self, hint: Hint, ids: tuple[Any, ...] = ()) -> None:
        self._waiting += payloads_of(hint, list(ids))

    async def leave(self, database: JoinedDatabase) -> None:
        """Send the collected hints inside the transaction."""
        payloads, self._waiting = self._waiting, []
        if isinstance(database.dialect, PostgresDialect):
            async with database.read(Pool.API) as connection:
                for payload in payloads:
                    await connection.execute(select(func.pg_notify(CHANNEL, payload)))


class _explained:  # noqa: N801 - reads as what it does
    """Raise NotJoinableError when the transaction's database has no Foliot tables."""

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
# Created once: cached statements belong to the dialect that they were built for.


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of the transaction's database, for any driver. Raises NotJoinableError."""
    if _commits_by_itself(connection):
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


def _commits_by_itself(connection: Connection) -> bool:
    """Whether the connection is in autocommit mode.

    Its engine or the connection itself may have set it; only the driver's connection shows both.
    """
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    pooled = connection.connection
    if connection.dialect.name != "sqlite":
        return getattr(pooled.dbapi_connection, "autocommit", False) is True
    driver: Any = pooled.driver_connection
    if driver.isolation_level is not None and getattr(driver, "autocommit", False) is not True:
        return False
    # The driver begins no transaction. SQLAlchemy may, in its `begin` event, as its documentation advises.
    if not connection.in_transaction():
        connection.begin()
    return not driver.in_transaction


class _AwaitedConnection:
    """Wraps a sync connection as an async one. Awaiting a result never suspends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, *arguments: Any) -> Any:
        return self._connection.execute(*arguments)

    async def exec_driver_sql(self, statement: str) -> Any:
        return self._connection.exec_driver_sql(statement)


def awaited(connection: Connection) -> AsyncConnection:
    return cast("AsyncConnection", _AwaitedConnection(connection))
