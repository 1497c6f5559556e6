"""An in-memory SQLite database, reset for every history by copying a template over it.

Its connection uses no thread: a statement is complete when the call returns, and a transaction can't be
interrupted. So only the order in which transactions begin is random. Triggers record the changes that the
witness judges.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.sqlite import SqliteDialect
from foliot.db.sqlite_driver import OneTripCursor
from foliot.timing.clock import VirtualClock
from tests.simulation.virtual_loop import VirtualLoop

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)

_SEEN = """
CREATE TABLE seen (
    number INTEGER PRIMARY KEY, what TEXT, row TEXT,
    a_before, a_after, b_before, b_after, c_before, c_after, d_before, d_after
);
CREATE TRIGGER seen_execution_made AFTER INSERT ON execution_t BEGIN
    INSERT INTO seen VALUES (NULL, 'execution', NEW.execution_id, NULL, NEW.status, NULL, NEW.attempt,
        NULL, NEW.worker_id, NULL, NEW.lease_until);
END;
CREATE TRIGGER seen_execution_changed AFTER UPDATE ON execution_t BEGIN
    INSERT INTO seen VALUES (NULL, 'execution', NEW.execution_id, OLD.status, NEW.status,
        OLD.attempt, NEW.attempt, OLD.worker_id, NEW.worker_id, OLD.lease_until, NEW.lease_until);
END;
CREATE TRIGGER seen_lock_made AFTER INSERT ON scheduler_lock_t BEGIN
    INSERT INTO seen VALUES (NULL, 'lock', NEW.lock_id, NULL, NEW.epoch, NULL, NEW.instance_id,
        NULL, NEW.last_heartbeat, NULL, NULL);
END;
CREATE TRIGGER seen_lock_changed AFTER UPDATE ON scheduler_lock_t BEGIN
    INSERT INTO seen VALUES (NULL, 'lock', NEW.lock_id, OLD.epoch, NEW.epoch, OLD.instance_id,
        NEW.instance_id, OLD.last_heartbeat, NEW.last_heartbeat, NULL, NULL);
END;
CREATE TRIGGER seen_schedule_changed AFTER UPDATE OF next_fire_ts, aggregate_version ON schedule_t BEGIN
    INSERT INTO seen VALUES (NULL, 'schedule', NEW.schedule_id, OLD.next_fire_ts, NEW.next_fire_ts,
        OLD.aggregate_version, NEW.aggregate_version, NULL, NEW.slot, NULL, NULL);
END;
"""


class HistoryClock(VirtualClock):
    """The database's clock, reset to its start for every history."""

    def __init__(self) -> None:
        super().__init__(BEGIN)

    def restart(self) -> None:
        self.jump((BEGIN - self.now()) / timedelta(seconds=1))
        self._monotonic = 0.0


class Memory:
    """The database, created once for all histories.

    Migrating takes as long as a history, and statements are compiled once per engine.
    """

    def __init__(self) -> None:
        self.clock = HistoryClock()
        self.dialect = SqliteDialect(self.clock)
        self.raw = _connect()
        self.engine = _open_engine(self.raw)
        self.reading = _Lasting(AsyncConnection(self.engine))
        """A connection for read-only use."""
        self._templates: dict[int, sqlite3.Connection] = {}

    @property
    def engines(self) -> dict[Pool, AsyncEngine]:
        return dict.fromkeys(Pool, self.engine)

    async def restart(self, shards: int) -> None:
        """Reset to a new database with this number of shards, and reset the clock."""
        self.clock.restart()
        if shards not in self._templates:
            await self._make_template(shards)
        self._templates[shards].backup(self.raw)

    def close(self) -> None:
        async def work() -> None:
            for lasting in (self.reading, self.engine.writing):
                await lasting.close()

        loop = VirtualLoop(self.clock)
        loop.run_until_complete(work())
        loop.close()

    async def _make_template(self, shards: int) -> None:
        _connect().backup(self.raw)
        await upgrade(Database(self.dialect, self.engines, "memory"), shards=shards)
        self.raw.executescript(_SEEN)
        self.raw.execute("DELETE FROM seen")
        self._templates[shards] = _connect()
        self.raw.backup(self._templates[shards])


def _connect() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


class _Settable:
    """Accepts the isolation level that SQLAlchemy sets, and ignores it:

    it is always `isolation_level=None`.
    """

    isolation_level: str | None = None


class _AtOnce:
    """Replaces the queue to aiosqlite's thread: runs each call at once, without a thread."""

    def put_nowait(self, asked: tuple[asyncio.Future[Any], Callable[[], Any]]) -> None:
        future, function = asked
        future.set_result(function())


class InlineConnection:
    """The part of an aiosqlite connection that SQLAlchemy uses, without a thread."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._connection = raw
        self._conn = _Settable()
        self._tx = _AtOnce()

    def cursor(self) -> Any:
        return OneTripCursor(self)  # type: ignore[arg-type]

    async def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        work(self._connection)

    async def create_function(self, *given: Any, **named: Any) -> None:
        self._connection.create_function(*given, **named)

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()

    async def close(self) -> None:
        """Do nothing: the connection lives as long as the process."""

    def stop(self) -> None:
        """Do nothing, as `close`."""

    @property
    def isolation_level(self) -> str | None:
        return self._conn.isolation_level


class _Lasting:
    """A connection that stays open: opening and closing cost more than a statement.

    It is not closed in a separate task, as SQLAlchemy does: nothing may run between a transaction and its
    end.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._is_open = False

    async def __aenter__(self) -> AsyncConnection:
        if not self._is_open:
            await self._connection
            self._is_open = True
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        if self._connection.in_transaction():
            await self._connection.rollback()

    async def close(self) -> None:
        if self._is_open:
            await self._connection.close()


class _Engine(AsyncEngine):
    """An engine for one transaction at a time."""

    writing: _Lasting

    def connect(self) -> Any:
        return self.writing


def _open_engine(raw: sqlite3.Connection) -> _Engine:
    async def connect() -> Any:
        return InlineConnection(raw)

    engine = create_async_engine("sqlite+aiosqlite://", async_creator=connect, poolclass=StaticPool)
    event.listen(engine.sync_engine, "begin", _begin)
    opened = _Engine(engine.sync_engine)
    opened.writing = _Lasting(AsyncConnection(opened))
    return opened


def _begin(connection: Connection) -> None:
    statement = connection.get_execution_options().get("foliot_begin")
    if statement:
        connection.exec_driver_sql(statement)
