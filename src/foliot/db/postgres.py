"""PostgreSQL: the dialect, and how to open its connection pools."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    String,
    Table,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    event,
    extract,
    func,
    literal,
    select,
    text,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB, Insert, insert
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.types import TypeEngine

from foliot.db.database import Database
from foliot.db.dialect import Columns, Limit, Pool, Rows
from foliot.db.postgres_url import connect, connect_arguments, shown
from foliot.db.tables.executions import IS_CLAIMABLE, IS_LATE, execution_t
from foliot.db.types import Instant

_TRANSIENT = {"40001", "40P01", "55P03"}
"""serialization_failure, deadlock_detected, lock_not_available: rolled back, worth a retry."""

_UNREACHABLE = ("08", "57P", "53", "25006", "28", "3D000", "25P03", "57014")
"""Connection errors, shutdown, no disk, memory or connections left, read-only server, wrong credentials, no
such database, and Foliot's own time limits on transactions."""


_UNSTORABLE = {"22000", "22001", "22003", "22008", "22021", "22P02", "22P03", "22P05", "22030", "22032"}
"""Data that asyncpg or the server can't store: too long, out of range, NUL, not UTF-8, not JSON."""

DISK_FULL = "53100"
READ_ONLY = "25006"
"""read_only_sql_transaction."""

RESTED_S = 2.0
STOPPED_CLIENT_S = 10.0
"""Seconds after which the server ends a worker's or API session that stopped inside a transaction."""


LOCKED_ROW_S = 0.25
"""Seconds that a batch waits for a locked row before it continues without it."""


class PostgresDialect:
    name = "postgresql"
    is_embedded = False
    snapshot_options: Mapping[str, str] = {"isolation_level": "REPEATABLE READ"}
    is_late = IS_LATE
    commits_in_background = 2
    # The planner looks a constant up in its statistics: a rare one makes it start the join at the wrong end.
    shares_keys = False
    writes_within = True

    def __init__(self, *, keeps_sessions: bool = True) -> None:
        # Behind a transaction-pooling proxy, a statement without BEGIN may be parsed by one server process
        # and run by another.
        self.commits_single = keeps_sessions

    def now(self) -> ColumnElement[datetime]:
        return func.clock_timestamp(type_=Instant)

    def plus(
        self, instant: ColumnElement[Any], seconds: ColumnElement[Any] | float
    ) -> ColumnElement[datetime]:
        # The seconds are the seventh argument of make_interval; SQLAlchemy has no named arguments for
        # functions.
        zero = literal(0)
        interval = func.make_interval(zero, zero, zero, zero, zero, zero, seconds)
        return instant + interval

    def rows(self, name: str, columns: Columns, rows: Rows) -> FromClause:
        values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        return _unnest(
            name,
            columns,
            [
                bindparam(None, value, type_=ARRAY(_array_item(kind)), unique=True)
                for kind, value in zip(columns.values(), values, strict=True)
            ],
        )

    def table(self, name: str, columns: Columns) -> FromClause:
        return _unnest(
            name,
            columns,
            [bindparam(f"{name}_{label}", type_=ARRAY(_array_item(kind))) for label, kind in columns.items()],
        )

    def arguments(self, name: str, columns: Columns, values: Sequence[Sequence[Any]]) -> dict[str, Any]:
        return {f"{name}_{label}": each for label, each in zip(columns, values, strict=True)}

    def guard(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    def json(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        return cast(document, JSONB)

    def has_value(self, document: ColumnElement[Any], key: str, value: str) -> ColumnElement[bool]:
        return type_coerce(document, JSONB).contains({key: value})

    def has_item(self, document: ColumnElement[Any], key: str, item: str) -> ColumnElement[bool]:
        return type_coerce(document, JSONB).contains({key: [item]})

    def micros(self, instant: ColumnElement[Any]) -> ColumnElement[Any]:
        return cast(extract("epoch", instant) * 1_000_000, BigInteger)

    def contains(
        self, text: ColumnElement[Any], part: ColumnElement[Any], *, is_indexed: bool
    ) -> ColumnElement[bool]:
        if not is_indexed:
            return func.strpos(text, part) > 0
        literally: ColumnElement[str] = part
        for sign in ("/", "%", "_"):
            literally = func.replace(literally, sign, f"/{sign}", type_=Text())
        return text.like(literal("%", Text()) + literally + literal("%", Text()), escape="/")

    def insert(self, table: Table) -> Insert:
        return insert(table)

    def claimable(
        self, queues: Sequence[tuple[Any, str]], limit: BindParameter[int], *also: ColumnElement[bool]
    ) -> Select[Any]:
        wanted = self.rows("wanted", {"host_id": Uuid(), "queue": String()}, queues)
        first = (
            select(execution_t.c.execution_id, execution_t.c.due_by_ts)
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
            .with_for_update(skip_locked=True)
            .lateral("first")
        )
        return (
            select(first.c.execution_id)
            .select_from(wanted.join(first, true()))
            .order_by(first.c.due_by_ts)
            .limit(limit)
        )

    def of_each(
        self,
        places: FromClause,
        first: Select[Any],
        key: Column[Any],  # noqa: ARG002
    ) -> Select[Any]:
        found = first.lateral("found")
        return select(*found.c).select_from(places.join(found, true()))

    @asynccontextmanager
    async def begin(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        async with engine.begin() as connection:
            yield connection

    async def limit(self, connection: AsyncConnection, limit: Limit) -> None:
        seconds = {"idle_in_transaction_session_timeout": limit.idle_s}
        if limit.statement_s is not None:
            seconds["statement_timeout"] = limit.statement_s
        if limit.lock_s is not None:
            seconds["lock_timeout"] = limit.lock_s
        # SET LOCAL takes no parameters and would be three round trips. set_config is one, and also local.
        await connection.execute(
            select(*[func.set_config(name, str(int(value * 1000)), True) for name, value in seconds.items()])
        )

    async def end_overdue(
        self, connection: AsyncConnection, table: Table, limit: Limit, *, only_stopped: bool = False
    ) -> None:
        # While the server waits for the rest of a statement that is being prepared, it counts the session
        # neither as idle nor as running a statement. A client that stops there, as a new leader may in its
        # first batch, keeps its locks regardless of the limits.
        # Only sessions that Foliot itself left behind are ended: same role, same application name (older
        # versions had none), this database, and a row lock. A backup only reads, so it is not ended.
        # `database = datid`: a table has the same OID in all databases that were cloned from one.
        overdue = text(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE relation = CAST(:table AS regclass) AND datname = current_database() "
            "AND database = datid AND mode IN ('RowShareLock', 'RowExclusiveLock') AND granted "
            "AND usename = session_user AND application_name IN (current_setting('application_name'), '') "
            "AND pid <> pg_backend_pid() "
            "AND xact_start < clock_timestamp() - make_interval(secs => :seconds) "
            "AND (NOT :only_stopped OR (state = 'active' AND wait_event = 'ClientRead'))"
        )
        await connection.execute(
            overdue, {"table": table.name, "seconds": limit.idle_s, "only_stopped": only_stopped}
        )

    def is_transient(self, error: BaseException) -> bool:
        return _sqlstate(error) in _TRANSIENT

    def is_unstorable(self, error: BaseException) -> bool:
        return isinstance(error, DBAPIError) and _sqlstate(error) in _UNSTORABLE

    def is_full(self, error: BaseException) -> bool:
        return _sqlstate(error) == DISK_FULL

    def is_unreachable(self, error: BaseException) -> bool:
        if isinstance(error, OSError | TimeoutError | PoolTimeoutError | InterfaceError):
            return True
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return True
        return _sqlstate(error).startswith(_UNREACHABLE)


def _unnest(name: str, columns: Columns, arrays: Sequence[BindParameter[Any]]) -> FromClause:
    names = [column(label, kind) for label, kind in columns.items()]
    return func.unnest(*arrays).table_valued(*names, name=name).render_derived()


def _array_item(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    # A TypeDecorator inside an ARRAY is called once per element; asyncpg accepts aware datetimes directly.
    return DateTime(timezone=True) if isinstance(kind, Instant) else kind


def _sqlstate(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    return str(getattr(origin, "sqlstate", None) or "")


def open_postgres(
    url: URL,
    *,
    sizes: dict[Pool, int],
    ttl_s: float,
    uses_hints: bool,
    setting: str = "FOLIOT_DATABASE_URL",
) -> Database:
    """Create the connection pools. Lazy: nothing connects before the first statement."""
    engines = {}
    for pool, size in sizes.items():
        is_leading = pool in (Pool.LEASE, Pool.FIRING, Pool.UPKEEP)
        settings: dict[str, str] = {}
        if uses_hints and not is_leading:
            # Set once per session instead of once per transaction.
            idle_ms = str(int(STOPPED_CLIENT_S * 1000))
            # Statements are short: compiling one would take longer than running it.
            settings = {"idle_in_transaction_session_timeout": idle_ms, "jit": "off"}
            if pool is Pool.API:
                # One request must not use the CPU cores of the others.
                settings["max_parallel_workers_per_gather"] = "0"
        arguments = connect_arguments(
            url,
            timeout=max(1.0, ttl_s) if is_leading else 10,
            is_primary=setting == "FOLIOT_DATABASE_URL",
            **settings,
        )
        arguments |= {"async_creator_fn": connect, "command_timeout": ttl_s if is_leading else 60}
        if not uses_hints:
            # Behind a transaction-pooling proxy, a prepared statement may be gone the next time.
            arguments |= {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
            arguments["prepared_statement_name_func"] = lambda: ""
        engines[pool] = create_async_engine(
            "postgresql+asyncpg://",
            pool_size=size,
            max_overflow=0,
            # An API client gets a "try again" answer instead of a long wait for a connection.
            pool_timeout=5 if pool is Pool.API else 30,
            pool_recycle=1800,
            connect_args=arguments,
            # Faster. Also, JSONB returns 1e300 as 301 digits, which orjson reads as the original float.
            json_deserializer=orjson.loads,
        )
        event.listen(engines[pool].sync_engine, "handle_error", _leave_read_only)
    # Services retry by themselves; only an API client would see the error of a lost connection.
    _ping_after_rest(engines[Pool.API])
    # A leader that stops inside a transaction must not delay its successor: the database ends the
    # transaction before others may take the lease.
    leading = Limit(idle_s=ttl_s * 0.8, statement_s=ttl_s * 0.8, lock_s=ttl_s * 0.2)
    firing = replace(leading, lock_s=min(LOCKED_ROW_S, ttl_s * 0.2))
    limits = {Pool.LEASE: leading, Pool.FIRING: firing, Pool.UPKEEP: firing}
    if not uses_hints:
        limits |= {pool: Limit(idle_s=STOPPED_CLIENT_S) for pool in (Pool.WORK, Pool.API)}
    dialect = PostgresDialect(keeps_sessions=uses_hints)
    return Database(dialect, engines, shown(url), limits, setting=setting)


def _leave_read_only(failed: ExceptionContext) -> None:
    """Drop the connection to a former primary and resolve its name anew: it will not be primary again."""
    if _sqlstate(failed.original_exception) == READ_ONLY:
        failed.is_disconnect = True


def _ping_after_rest(engine: AsyncEngine) -> None:
    """Ping connections before use if they were idle for RESTED_S. Always pinging costs two round trips."""

    def rest(_raw: Any, record: Any) -> None:
        record.info["rests_since"] = time.monotonic()

    def check(raw: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("rests_since", float("inf")) < RESTED_S:
            return
        try:
            is_alive = engine.sync_engine.dialect.do_ping(raw)
        except Exception:
            is_alive = False
        if not is_alive:
            raise DisconnectionError

    event.listen(engine.sync_engine, "checkin", rest)
    event.listen(engine.sync_engine, "checkout", check)
