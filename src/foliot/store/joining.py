"""The store inside a transaction of somebody else's: what it writes commits with theirs, or not at all.

Nothing is begun, committed or tried again here. What is refused is undone to where it began and leaves the
transaction as it was; on PostgreSQL that takes a savepoint around the act, its reads too: any statement that
fails would end the transaction. SQLite undoes the statement alone, so what may be refused has to be the first
of an act. Its savepoints are left alone: Python's driver would commit what begins with one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import FoliotError, UnstorableError
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
        """All of it, or nothing: what is refused is undone. Raises UnstorableError, NotJoinableError."""
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
            # A connection that broke, or was cancelled within a statement, is given up by SQLAlchemy. What
            # it says to this would hide why: a task that is cancelled has to end as cancelled.
            with suppress(SQLAlchemyError):
                await connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                await connection.exec_driver_sql(f"RELEASE SAVEPOINT {SAVEPOINT}")
            raise
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


def dialect_of(connection: Connection) -> Dialect:
    """Of the transaction's database, whatever driver its owner has chosen. Raises NotJoinableError."""
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
    """Told to by its engine, or by itself: only the driver's own connection knows of both."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    pooled = connection.connection
    if connection.dialect.name != "sqlite":
        return getattr(pooled.dbapi_connection, "autocommit", False) is True
    driver: Any = pooled.driver_connection
    if driver.isolation_level is not None and getattr(driver, "autocommit", False) is not True:
        return False
    # The driver begins no transaction. SQLAlchemy may, in its `begin` event, as it advises.
    if not connection.in_transaction():
        connection.begin()
    return not driver.in_transaction


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
