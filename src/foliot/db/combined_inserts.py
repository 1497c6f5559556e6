"""Combine several inserts into one statement where the database supports it, to save round trips.

After every round trip a request waits for the event loop. So under load the number of round trips determines
how long it takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Insert, Table, bindparam
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect


class Write(NamedTuple):
    """A cached insert statement and its values."""

    statement: Insert
    values: Mapping[str, Any]


def row_of_values(
    dialect: Dialect, table: Table, values: Mapping[str, Any], *, may_exist: bool = False
) -> Write:
    """Build the insert of one row. `may_exist`: if the row exists, leave it unchanged."""
    statement = _insert(dialect, table, tuple(values), may_exist)
    return Write(statement, {f"{table.name}_{name}": value for name, value in values.items()})


async def write_together(connection: AsyncConnection, dialect: Dialect, writes: Sequence[Write]) -> None:
    """Execute inserts into different tables. No insert sees the rows of the others."""
    if not dialect.writes_within:
        for write in writes:
            await connection.execute(write.statement, write.values)
        return
    joined = _joined(tuple(write.statement for write in writes))
    await connection.execute(
        joined, {name: value for write in writes for name, value in write.values.items()}
    )


@lru_cache(maxsize=128)
def _insert(dialect: Dialect, table: Table, names: Iterable[str], may_exist: bool) -> Insert:
    statement = dialect.insert(table).values(
        {name: bindparam(f"{table.name}_{name}", type_=table.c[name].type) for name in names}
    )
    return statement.on_conflict_do_nothing() if may_exist else statement


@lru_cache(maxsize=128)
def _joined(statements: tuple[Insert, ...]) -> Insert:
    *others, last = statements
    return last.add_cte(*(each.cte(f"write_{number}") for number, each in enumerate(others)))
