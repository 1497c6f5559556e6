"""Write events to `event_store_t` and `outbox_message_t`, as the last step of a transaction.

Offsets come from one row, `log_counter`. A transaction that increments it keeps it locked until COMMIT, and
the next writer waits. So offsets have no gaps and are in commit order: a reader that has seen one offset has
seen all before it. Events are written last, so that other writers do not wait for work that could be done
before. A rollback also takes back the offsets.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    Integer,
    String,
    Text,
    Update,
    Uuid,
    bindparam,
    insert,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from foliot.db.columns import BatchColumns, Shape
from foliot.db.dialect import Columns, Dialect
from foliot.db.tables.events import event_store_t, log_counter, outbox_message_t
from foliot.db.tables.schedules import schedule_t
from foliot.db.types import Instant
from foliot.model.ids import new_id
from foliot.planning.events import NewEvent

OFFSETS = 1
"""The id of the only row of `log_counter`."""

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
_EVENTS = BatchColumns("event", _COLUMNS, by=("id", "ordinal"))


async def write_events(connection: AsyncConnection, dialect: Dialect, events: Sequence[NewEvent]) -> None:
    """Write these events as one transaction of the outbox, in this order."""
    if not events:
        return
    batch = _EVENTS.lay_out(dialect, [(*event, number) for number, event in enumerate(events)])
    if dialect.writes_within:
        given = {"transaction_id": new_id(), "event_count": len(events)}
        await connection.execute(_write_all(dialect, batch.shape), {**batch.arguments, **given})
        return
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
    """Reserve `count` event numbers of a schedule, whose row must be locked; return the first of them."""
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
    first_offset = bindparam("first_offset", type_=BigInteger())
    values = [*_values(dialect, new), *_shipping(new["event_topic"], first_offset, new["ordinal"])]
    source = select(*values).select_from(table).where(true())
    return dialect.insert(outbox_message_t).from_select([*_STORED, *_SHIPPED], source)


@lru_cache(maxsize=64)
def _write_all(dialect: Dialect, shape: Shape) -> Insert:
    """Build one statement that stores, reserves offsets and ships, so that the batch is sent only once."""
    table, new = _EVENTS.table(dialect, shape)
    values = [value.label(name) for name, value in zip(_STORED, _values(dialect, new), strict=True)]
    event = (
        select(*values, new["event_topic"].label("event_topic"), new["ordinal"].label("ordinal"))
        .select_from(table)
        .cte("new_event")
    )
    stored = [event.c[name] for name in _STORED]
    kept = insert(event_store_t).from_select(list(_STORED), select(*stored)).cte("kept")
    reserved = _reserve().cte("reserved")
    first_offset = reserved.c.next_offset - bindparam("event_count", type_=Integer())
    source = select(*stored, *_shipping(event.c.event_topic, first_offset, event.c.ordinal)).select_from(
        event.join(reserved, true())
    )
    return insert(outbox_message_t).from_select([*_STORED, *_SHIPPED], source).add_cte(kept)


_SHIPPED = ("event_topic", "c_offset", "transaction_id", "transaction_ordinal", "transaction_count")


def _shipping(
    event_topic: ColumnElement[Any], first_offset: ColumnElement[Any], ordinal: ColumnElement[Any]
) -> list[ColumnElement[Any]]:
    return [
        event_topic,
        first_offset + ordinal,
        bindparam("transaction_id", type_=Uuid()),
        ordinal,
        bindparam("event_count", type_=Integer()),
    ]


def _values(dialect: Dialect, new: Any) -> list[Any]:
    return [dialect.json(new[name]) if name == "payload" else new[name] for name in _STORED]


@lru_cache(maxsize=1)
def _reserve() -> ReturningUpdate[Any]:
    statement: Update = update(log_counter).where(log_counter.c.id == literal(OFFSETS))
    return statement.values(
        next_offset=log_counter.c.next_offset + bindparam("event_count", type_=Integer())
    ).returning(log_counter.c.next_offset)
