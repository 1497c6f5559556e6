"""What differs between the databases, and nothing else."""

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
    """Who uses a connection. Each has a bounded pool of its own, so that none can starve another."""

    LEASE = "lease"
    FIRING = "firing"
    UPKEEP = "upkeep"
    """Housekeeping of leaders: a slow duty keeps no connection from firing."""
    WORK = "work"
    API = "api"
    CONSUMER = "consumer"
    """Held for as long as handlers of events run."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a transaction may keep others waiting."""

    idle_s: float
    """Without a word from its client: it was stopped, or is gone."""
    statement_s: float | None = None
    """In one statement."""
    lock_s: float | None = None
    """Waiting for a lock."""


class Dialect(Protocol):
    name: str
    commits_in_background: int
    """How many transactions a process gains from having under way while it computes."""
    commits_single: bool
    """Whether a single statement is best run without BEGIN and COMMIT around it."""
    writes_within: bool
    """Whether a statement may have others within it that write."""
    shares_keys: bool
    """Whether a key that all rows of a batch share may be a constant, without misleading the planner."""

    # Statements are kept by their dialect.
    def __hash__(self) -> int: ...

    def now(self) -> ColumnElement[datetime]:
        """The store's clock, read by the statement itself."""
        ...

    def plus(
        self, instant: ColumnElement[Any], seconds: ColumnElement[Any] | float
    ) -> ColumnElement[datetime]:
        """An instant so many seconds later."""
        ...

    def rows(self, name: str, columns: Columns, rows: Rows) -> FromClause:
        """The given rows as a table, in a statement whose text does not depend on how many there are."""
        ...

    def table(self, name: str, columns: Columns) -> FromClause:
        """A table for rows that are given as `arguments` when the statement runs."""
        ...

    def arguments(self, name: str, columns: Columns, values: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Rows for a `table`, given column by column."""
        ...

    def guard(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """A column in a condition that only checks rows, and is not to be looked up by."""
        ...

    def json(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        """JSON text of `rows` as a value for a JSON column."""
        ...

    def contains(
        self, text: ColumnElement[Any], part: ColumnElement[Any], *, is_indexed: bool
    ) -> ColumnElement[bool]:
        """Whether a text has these very characters in it; in a form that an index may be used for, or not."""
        ...

    def insert(self, table: Table) -> PostgresInsert | SqliteInsert: ...

    def claimable(
        self, queues: Sequence[tuple[Any, str]], most: BindParameter[int], *also: ColumnElement[bool]
    ) -> Select[Any]:
        """Ids of what a worker may claim now from these (host_id, queue)s, most urgent first, locked.

        Rows that another worker is claiming at this moment are passed over, and those of which one of the
        further conditions does not hold.
        """
        ...

    def of_each(self, places: FromClause, first: Select[Any], key: Column[Any]) -> Select[Any]:
        """The rows of `first`, a limited query that refers to `places`, for every one of these.

        It selects columns and expressions of one table, whose key is given.
        """
        ...

    def begin(self, engine: AsyncEngine) -> AbstractAsyncContextManager[AsyncConnection]:
        """A write transaction: committed when the block ends, rolled back when it raises."""
        ...

    async def limit(self, connection: AsyncConnection, limit: Limit) -> None:
        """Let the database end this transaction if it lasts longer: whoever stops in it must not block."""
        ...

    async def end_overdue(
        self, connection: AsyncConnection, table: Table, limit: Limit, *, only_stopped: bool = False
    ) -> None:
        """End transactions of Foliot that lock rows of a table and have outlived the limit unnoticed by it.

        All of them, or only those whose client has stopped in the middle of a statement. Sessions of other
        roles and other programs are never ended.
        """
        ...

    def is_transient(self, error: BaseException) -> bool:
        """The transaction was rolled back, and the same again may succeed at once."""
        ...

    def is_unstorable(self, error: BaseException) -> bool:
        """A value is such that the database can't hold it: NUL, a broken JSON, a number beyond its type."""
        ...

    def is_full(self, error: BaseException) -> bool:
        """There is no room on the disk for what was to be written."""
        ...

    def is_unreachable(self, error: BaseException) -> bool:
        """The database could not be reached, went away, or can't serve now."""
        ...
