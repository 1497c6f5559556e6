"""Statements on `rate_t`: number of admitted requests per name and time window, for the whole cluster."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, String, delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Columns, Pool
from foliot.db.schema import rate_t
from foliot.db.types import Instant

_COLUMNS: Columns = {"name": String(), "window_ts": Instant(), "amount": BigInteger()}


class RateWindow(NamedTuple):
    """A time window of one name, identified by its start."""

    name: str
    window_ts: datetime


class Rates:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    async def add(self, amounts: Mapping[RateWindow, int]) -> dict[RateWindow, int]:
        """Add to the totals of these windows in one statement. Return the totals of the whole cluster."""
        if not amounts:
            return {}
        # Sorted, so that two instances never deadlock on each other's rows.
        rows = sorted((*window, amount) for window, amount in amounts.items())
        added = self._dialect.rows("added", _COLUMNS, rows)
        # In SQLite a SELECT with ON CONFLICT needs a WHERE, or the parser reads ON as a join condition.
        source = select(added.c.name, added.c.window_ts, added.c.amount).where(added.c.amount >= 0)
        statement = self._dialect.insert(rate_t).from_select(list(_COLUMNS), source)
        upsert = statement.on_conflict_do_update(
            index_elements=[rate_t.c.name, rate_t.c.window_ts],
            set_={"amount": rate_t.c.amount + statement.excluded.amount},
        ).returning(rate_t.c.name, rate_t.c.window_ts, rate_t.c.amount)

        async def work(connection: AsyncConnection) -> dict[RateWindow, int]:
            result = await connection.execute(upsert)
            return {RateWindow(row.name, row.window_ts): row.amount for row in result}

        return await self._database.write(Pool.API, work, is_single=True)

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete up to `limit` windows that began before this. Return how many."""
        old = (
            select(rate_t.c.name, rate_t.c.window_ts)
            .where(rate_t.c.window_ts < before)
            .order_by(rate_t.c.window_ts)
            .limit(limit)
            # Another instance may prune at the same time.
            .with_for_update(skip_locked=True)
            # If inlined, it may run more than once and find more than the limit.
            .cte("old")
            .prefix_with("MATERIALIZED")
        )
        gone = delete(rate_t).where(
            tuple_(rate_t.c.name, rate_t.c.window_ts).in_(select(*old.c)),
            # Repeated, because PostgreSQL may otherwise scan the whole table for the join.
            rate_t.c.window_ts < before,
        )

        async def work(connection: AsyncConnection) -> int:
            # SQLite's driver reports no row count for a statement that begins with WITH.
            return len((await connection.execute(gone.returning(rate_t.c.window_ts))).all())

        return await self._database.write(Pool.API, work, is_single=True)
