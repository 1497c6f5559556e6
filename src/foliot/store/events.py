"""Writing `event_store_t` and `outbox_message_t`: the last thing that a transaction does before it commits.

Offsets come from one row, `log_counter`. Whoever raises it keeps it locked until COMMIT, so the next writer
waits, and offsets have no gaps and are in the order of commits: a reader that has seen one has seen all
before it. For the same reason it comes last: nobody waits for work that could have been done before. A
transaction that is rolled back takes its offsets back with it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Insert,
    Integer,
    String,
    Text,
    Update,
    Uuid,
    bindparam,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from foliot.model.ids import new_id
from foliot.planning.events import NewEvent
from foliot.store.columns import Shape, Spread
from foliot.store.dialect import Columns, Dialect
from foliot.store.schema import event_store_t, log_counter, outbox_message_t, schedule_t
from foliot.store.types import Instant

OFFSETS = 1
"""The one row of `log_counter`."""

_COLUMNS: Columns = {
    "id": Uuid(),
    "host_id": Uuid(),
    "user_id": Uuid(),
    "nonce": BigInteger(),
    "aggregate_id": String(),
    "aggregate_version": BigInteger(),
    "aggregate_type": String(),
    "event_type": String(),
    "event_ts": Instant(),
    "payload": Text(),
    "event_topic": String(),
    "ordinal": Integer(),
}
_STORED = tuple(name for name in _COLUMNS if name not in ("event_topic", "ordinal"))
_EVENTS = Spread("event", _COLUMNS, by=("id", "ordinal"))


async def write_events(connection: AsyncConnection, dialect: Dialect, events: Sequence[NewEvent]) -> None:
    """Write these as one transaction of the outbox, in this order."""
    if not events:
        return
    batch = _EVENTS.lay_out(dialect, [(*event, number) for number, event in enumerate(events)])
    await connection.execute(_store(dialect, batch.shape), batch.arguments)
    reserved = await connection.execute(_reserve(), {"event_count": len(events)})
    following: int = reserved.scalar_one()
    await connection.execute(
        _ship(dialect, batch.shape),
        {
            **batch.arguments,
            "first_offset": following - len(events),
            "transaction_id": new_id(),
            "event_count": len(events),
        },
    )


async def next_event_seq(connection: AsyncConnection, schedule_id: UUID, count: int) -> int:
    """Count so many more events of a schedule whose row is locked; the first of the new numbers."""
    raised = (
        update(schedule_t)
        .where(schedule_t.c.schedule_id == schedule_id)
        .values(event_seq=schedule_t.c.event_seq + count)
        .returning(schedule_t.c.event_seq)
    )
    latest: int = (await connection.execute(raised)).scalar_one()
    return latest - count + 1


@lru_cache(maxsize=64)
def _store(dialect: Dialect, shape: Shape) -> Insert:
    table, new = _EVENTS.table(dialect, shape)
    source = select(*_values(dialect, new)).select_from(table).where(true())
    return dialect.insert(event_store_t).from_select(list(_STORED), source)


@lru_cache(maxsize=64)
def _ship(dialect: Dialect, shape: Shape) -> Insert:
    table, new = _EVENTS.table(dialect, shape)
    source = (
        select(
            *_values(dialect, new),
            new["event_topic"],
            bindparam("first_offset", type_=BigInteger()) + new["ordinal"],
            bindparam("transaction_id", type_=Uuid()),
            new["ordinal"],
            bindparam("event_count", type_=Integer()),
        )
        .select_from(table)
        .where(true())
    )
    names = [
        *_STORED,
        "event_topic",
        "c_offset",
        "transaction_id",
        "transaction_ordinal",
        "transaction_count",
    ]
    return dialect.insert(outbox_message_t).from_select(names, source)


def _values(dialect: Dialect, new: Any) -> list[Any]:
    return [dialect.json(new[name]) if name == "payload" else new[name] for name in _STORED]


@lru_cache(maxsize=1)
def _reserve() -> ReturningUpdate[Any]:
    statement: Update = update(log_counter).where(log_counter.c.id == literal(OFFSETS))
    return statement.values(
        next_offset=log_counter.c.next_offset + bindparam("event_count", type_=Integer())
    ).returning(log_counter.c.next_offset)
