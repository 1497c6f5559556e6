"""The interface to what differs between PostgreSQL and SQLite."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from sqlalchemy import BindParameter, Column, ColumnElement, FromClause, Select, Table
from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.types import TypeEngine

Columns = Mapping[str, TypeEngine[Any]]
Rows = Sequence[Sequence[Any]]


class Pool(StrEnum):
    """Users of connections. Each has its own bounded pool, so that none can starve another."""

    LEASE = "lease"
    FIRING = "firing"
    UPKEEP = "upkeep"
    """Housekeeping of leaders. Its own pool, so that a slow job takes no connection from firing."""
    WORK = "work"
    API = "api"
    CONSUMER = "consumer"
    """Connections that are held while event handlers run."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Timeouts of a transaction, so that it does not block others for long."""

    idle_s: float
    """Maximum time without a statement from the client, which may be stopped or gone."""
    statement_s: float | None = None
    """Maximum time of one statement; None: no limit."""
    lock_s: float | None = None
    """Maximum time to wait for a lock; None: no limit."""


class Dialect(Protocol):
    name: str
    is_embedded: bool
    """Whether the database is a file that this machine reads by itself."""
    snapshot_options: Mapping[str, str]
    """Options of a connection that reads from one snapshot, whatever is written meanwhile."""
    is_late: str
    """SQL condition of the index of executions that were inserted long after their fire time."""
    commits_in_background: int
    """How many transactions are worth running in the background while the process computes; 0: none."""
    commits_single: bool
    """Whether to run a single statement without BEGIN and COMMIT around it."""
    writes_within: bool
    """Whether a statement may contain CTEs that write."""
    shares_keys: bool
    """Whether a key that all rows of a batch share may be a constant without misleading the planner."""

    # Cached statements have the dialect in their key.
    def __hash__(self) -> int: ...

    def now(self) -> ColumnElement[datetime]:
        """The store's clock, read when the statement runs."""
        ...

    def plus(
        self, instant: ColumnElement[Any], seconds: ColumnElement[Any] | float
    ) -> ColumnElement[datetime]:
        """Return an expression for the instant plus a number of seconds."""
        ...

    def rows(self, name: str, columns: Columns, rows: Rows) -> FromClause:
        """Return the given rows as a table. The statement's text does not depend on the number of rows."""
        ...

    def table(self, name: str, columns: Columns) -> FromClause:
        """Return a table whose rows are given as `arguments` when the statement runs."""
        ...

    def arguments(self, name: str, columns: Columns, values: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return the arguments for a `table`. `values` holds one sequence per column."""
        ...

    def guard(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Wrap a column in a condition that only checks rows. An index on it must not drive the query."""
        ...

    def json(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        """Convert JSON text from `rows` to a value for a JSON column."""
        ...

    def has_value(self, document: ColumnElement[Any], key: str, value: str) -> ColumnElement[bool]:
        """Whether the JSON object has this value under the key."""
        ...

    def has_item(self, document: ColumnElement[Any], key: str, item: str) -> ColumnElement[bool]:
        """Whether the JSON object has a list under the key that contains the item."""
        ...

    def micros(self, instant: ColumnElement[Any]) -> ColumnElement[Any]:
        """Convert an instant to microseconds since 1970."""
        ...

    def contains(
        self, text: ColumnElement[Any], part: ColumnElement[Any], *, is_indexed: bool
    ) -> ColumnElement[bool]:
        """Whether a text contains exactly this part. `is_indexed`: in a form that an index can serve."""
        ...

    def insert(self, table: Table) -> PostgresInsert | SqliteInsert: ...

    def claimable(
        self, queues: Sequence[tuple[Any, str]], limit: BindParameter[int], *also: ColumnElement[bool]
    ) -> Select[Any]:
        """Select and lock the ids of up to `limit` claimable executions of these (host_id, queue) pairs.

        Most urgent first. Skips rows that another worker is claiming at this moment, and rows that do not
        meet all conditions in `also`.
        """
        ...

    def of_each(self, places: FromClause, first: Select[Any], key: Column[Any]) -> Select[Any]:
        """Run `first`, a limited query that refers to `places`, for each row of `places` (a lateral join).

        `first` selects columns and expressions of one table; `key` is the key of that table.
        """
        ...

    def begin(self, engine: AsyncEngine) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a write transaction: committed when the block ends, rolled back when it raises."""
        ...

    async def limit(self, connection: AsyncConnection, limit: Limit) -> None:
        """Let the database end this transaction after these timeouts, so a stopped client blocks nobody."""
        ...

    async def end_overdue(
        self, connection: AsyncConnection, table: Table, limit: Limit, *, only_stopped: bool = False
    ) -> None:
        """End Foliot's transactions that lock rows of a table and are older than `limit.idle_s`.

        For transactions that the database's own timeouts did not end.

        `only_stopped`: only those whose client has stopped in the middle of a statement. Sessions of other
        roles and other programs are never ended.
        """
        ...

    def is_transient(self, error: BaseException) -> bool:
        """Whether the transaction was rolled back and an immediate retry may succeed."""
        ...

    def is_unstorable(self, error: BaseException) -> bool:
        """Whether the database can't store a value: NUL, broken JSON, a number out of range."""
        ...

    def is_full(self, error: BaseException) -> bool:
        """Whether the disk of the database is full."""
        ...

    def is_unreachable(self, error: BaseException) -> bool:
        """Whether the database could not be reached, went away, or can't serve now."""
        ...
