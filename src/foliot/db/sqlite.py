"""SQLite: the dialect, and how to open a database file.

One file, one machine, any number of processes. Only one writer runs at a time. Inside a process a lock makes
writers wait in order. Between processes SQLite's lock does, with a busy timeout and then a retry. Time comes
from the clock that the store was given, so a virtual clock works.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    Table,
    Text,
    UnaryExpression,
    Uuid,
    bindparam,
    cast,
    event,
    exists,
    func,
    literal,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql.operators import custom_op
from sqlalchemy.sql.util import ClauseAdapter
from sqlalchemy.types import TypeEngine

from foliot.db.database import Database
from foliot.db.dialect import Columns, Limit, Pool, Rows
from foliot.db.sqlite_driver import connector
from foliot.db.tables.executions import IS_CLAIMABLE, IS_LATE_IN_SQLITE, execution_t
from foliot.db.types import Instant, Json
from foliot.model.instant import micros_of
from foliot.timing.clock import Clock

BUSY_TIMEOUT_S = 5
CHECKPOINT_PAGES = 8_000
"""Checkpoint after 32 MB of write-ahead log, because firing changes the same pages repeatedly."""
CACHE_KB = 32_000
"""Max page cache per connection. SQLite's default of 2 MB holds the indexes of a few thousand schedules."""


class SqliteDialect:
    name = "sqlite"
    is_embedded = True
    snapshot_options: Mapping[str, str] = {"foliot_begin": "BEGIN"}
    is_late = IS_LATE_IN_SQLITE
    # A thread of this process does the work. It would wait for the GIL after every call while another thread
    # computes: half as fast as running one after the other.
    commits_in_background = 0
    # Only one writer at a time: BEGIN IMMEDIATE ensures that.
    commits_single = False
    shares_keys = True
    writes_within = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()

    def now(self) -> ColumnElement[datetime]:
        # Evaluated when the statement runs, so that a cached statement does not freeze the clock.
        return bindparam(None, callable_=self._clock.now, type_=Instant(), unique=True)

    def plus(
        self, instant: ColumnElement[Any], seconds: ColumnElement[Any] | float
    ) -> ColumnElement[datetime]:
        if isinstance(seconds, int | float):
            micros: ColumnElement[Any] = literal(int(seconds * 1_000_000), BigInteger)
        else:
            micros = cast(seconds * 1_000_000, BigInteger)
        return instant.op("+", return_type=Instant())(micros)

    def rows(self, name: str, columns: Columns, rows: Rows) -> FromClause:
        document = _document(columns, list(zip(*rows, strict=True)))
        return _json_each(name, columns, bindparam(None, document, unique=True))

    def table(self, name: str, columns: Columns) -> FromClause:
        return _json_each(name, columns, bindparam(name, type_=Text()))

    def arguments(self, name: str, columns: Columns, values: Sequence[Sequence[Any]]) -> dict[str, Any]:
        return {name: _document(columns, values)}

    def guard(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        # A unary plus keeps SQLite from using an index on the column. Without it, firing scans the index of
        # due schedules once for every planned row: 500 fires/s instead of 30,000.
        return UnaryExpression(column, operator=custom_op("+"), type_=column.type)

    def json(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.json(document, type_=Json)

    def has_value(self, document: ColumnElement[Any], key: str, value: str) -> ColumnElement[bool]:
        each = func.json_each(document).table_valued("key", "value", name="entry")
        return exists().select_from(each).where(each.c.key == key, each.c.value == value)

    def has_item(self, document: ColumnElement[Any], key: str, item: str) -> ColumnElement[bool]:
        each = func.json_each(document, f"$.{key}").table_valued("value", name="item")
        return exists().select_from(each).where(each.c.value == item)

    def micros(self, instant: ColumnElement[Any]) -> ColumnElement[Any]:
        return type_coerce(instant, BigInteger)

    def contains(
        self,
        text: ColumnElement[Any],
        part: ColumnElement[Any],
        *,
        is_indexed: bool,  # noqa: ARG002
    ) -> ColumnElement[bool]:
        return func.instr(text, part) > 0

    def insert(self, table: Table) -> Insert:
        return insert(table)

    def claimable(
        self, queues: Sequence[tuple[Any, str]], limit: BindParameter[int], *also: ColumnElement[bool]
    ) -> Select[Any]:
        # SQLite has no LATERAL, and a UNION of queues is limited to 500 terms.
        wanted = self.rows("wanted", {"host_id": Uuid(), "queue": String()}, queues)
        first = (
            select(execution_t.c.execution_id)
            .where(
                execution_t.c.host_id == wanted.c.host_id,
                execution_t.c.queue == wanted.c.queue,
                text(IS_CLAIMABLE),
                execution_t.c.ready_ts <= self.now(),
                *also,
            )
            .order_by(execution_t.c.due_by_ts)
            .limit(limit)
            .correlate(wanted)
        )
        found = execution_t.alias("found")
        return (
            select(found.c.execution_id)
            .select_from(wanted.join(found, found.c.execution_id.in_(first)))
            .order_by(found.c.due_by_ts)
            .limit(limit)
        )

    def of_each(self, places: FromClause, first: Select[Any], key: Column[Any]) -> Select[Any]:
        found = key.table.alias("found")
        keys = first.with_only_columns(key)
        adapter = ClauseAdapter(found)
        columns = [adapter.traverse(each) for each in first.selected_columns]
        return select(*columns).select_from(places.join(found, found.c[key.name].in_(keys)))

    @asynccontextmanager
    async def begin(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        async with self._turn, engine.connect() as connection:
            await connection.execution_options(foliot_begin="BEGIN IMMEDIATE")
            async with connection.begin():
                yield connection

    async def limit(self, connection: AsyncConnection, limit: Limit) -> None:
        """Do nothing: a process that stops inside a transaction is on this machine, where it can be seen."""

    async def end_overdue(
        self, connection: AsyncConnection, table: Table, limit: Limit, *, only_stopped: bool = False
    ) -> None:
        """Do nothing, for the same reason as in `limit`."""

    def is_transient(self, error: BaseException) -> bool:
        return isinstance(error, DBAPIError) and "database is locked" in str(error.orig)

    def is_unstorable(self, error: BaseException) -> bool:
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return True
        return isinstance(error, DBAPIError) and any(
            part in str(error.orig) for part in ("malformed JSON", "Error binding", "too large", "too big")
        )

    def is_full(self, error: BaseException) -> bool:
        return isinstance(error, DBAPIError) and "disk is full" in str(error.orig)

    def is_unreachable(self, error: BaseException) -> bool:
        if not isinstance(error, DBAPIError):
            return isinstance(error, OSError)
        message = str(error.orig)
        return any(part in message for part in ("unable to open", "disk I/O", "is locked", "readonly"))


def _document(columns: Columns, values: Sequence[Sequence[Any]]) -> str:
    columnwise = [_plain(kind, each) for kind, each in zip(columns.values(), values, strict=False)]
    return orjson.dumps(list(zip(*columnwise, strict=True))).decode()


def _json_each(name: str, columns: Columns, document: BindParameter[str]) -> FromClause:
    each = func.json_each(document).table_valued("value", name=f"{name}_json")
    fields = [
        type_coerce(func.json_extract(each.c.value, f"$[{index}]"), kind).label(label)
        for index, (label, kind) in enumerate(columns.items())
    ]
    return select(*fields).select_from(each).subquery(name)


def _plain(kind: TypeEngine[Any], values: Sequence[Any]) -> Sequence[Any]:
    """Convert a column of values to SQLite's storage format."""
    if isinstance(kind, Instant):
        return [None if value is None else micros_of(value) for value in values]
    if isinstance(kind, Uuid):
        return [value.hex for value in values]
    return values


def _prepare(connection: Any, synchronous: str) -> None:
    # The driver would start transactions too late and as readers. `_begin` starts them instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute(f"PRAGMA synchronous = {synchronous}")
    cursor.execute(f"PRAGMA cache_size = {-CACHE_KB}")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    cursor.close()


def _begin(connection: Connection) -> None:
    statement = connection.get_execution_options().get("foliot_begin")
    if statement:
        connection.exec_driver_sql(statement)


def open_sqlite(url: URL, *, clock: Clock, sizes: dict[Pool, int], is_durable: bool = True) -> Database:
    """Create the connection pools. Lazy: the first statement creates the file."""
    synchronous = "FULL" if is_durable else "OFF"
    engines = {}
    for pool, size in sizes.items():
        engine = create_async_engine(
            url.set(drivername="sqlite+aiosqlite"),
            async_creator=connector(str(url.database)),
            pool_size=size,
            max_overflow=0,
            pool_timeout=30,
        )
        event.listen(engine.sync_engine, "connect", lambda raw, _record: _prepare(raw, synchronous))
        event.listen(engine.sync_engine, "begin", _begin)
        engines[pool] = engine
    return Database(SqliteDialect(clock), engines, str(url.database))
