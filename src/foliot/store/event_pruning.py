"""Old events go, but none that somebody is still to read.

A message may be deleted when it is old enough and every group of consumers and the relay have passed it. They
go from the beginning of the log, so what is left has no gaps. A group that nobody runs any more, a relay or
a topic that its broker refuses hold all that they have not passed: `status` names them, and `foliot event
groups delete` and `foliot event relays delete` remove them.
"""

from datetime import datetime, timedelta
from itertools import takewhile

from sqlalchemy import BigInteger, Uuid, delete, func, literal, select, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.ids import first_id_at
from foliot.store.dialect import Dialect
from foliot.store.schema import (
    consumed_event_t,
    consumer_offsets,
    dead_letter_queue,
    event_store_t,
    outbox_message_t,
    relay_parked_t,
    relay_t,
)

CONSUMED_KEPT = timedelta(days=7)
"""How long it is known that an event was handled: as long as a broker may bring it again."""
ALL = 2**63 - 1


async def prune_events(connection: AsyncConnection, dialect: Dialect, before: datetime, limit: int) -> int:
    """Delete the oldest messages and events from before this instant; how many."""
    table = outbox_message_t
    everyone = union_all(
        select(func.min(consumer_offsets.c.next_offset).label("next_offset")),
        select(func.min(relay_t.c.next_offset)),
        select(func.min(relay_parked_t.c.next_offset)),
    ).subquery()
    passed = select(
        func.coalesce(func.min(everyone.c.next_offset), literal(ALL, BigInteger))
    ).scalar_subquery()
    oldest = await connection.execute(
        select(table.c.id).where(table.c.c_offset < passed).order_by(table.c.c_offset).limit(limit)
    )
    # Ids grow with time, as do offsets, and both are in the row that is read anyway.
    too_young = first_id_at(before)
    ids = list(takewhile(lambda each: each < too_young, oldest.scalars()))
    if ids:
        gone = dialect.rows("gone", {"id": Uuid()}, [(each,) for each in ids])
        for each in (event_store_t, outbox_message_t):
            await connection.execute(delete(each).where(each.c.id.in_(select(gone.c.id))))
    return len(ids)


async def prune_consumed(connection: AsyncConnection, now: datetime, before: datetime, limit: int) -> int:
    """Delete what is noted of events that no broker will bring again, and dead letters replayed long ago."""
    consumed = consumed_event_t
    is_old = consumed.c.consumed_ts < now - CONSUMED_KEPT
    old = (
        select(consumed.c.group_id, consumed.c.event_id)
        .where(is_old)
        .order_by(consumed.c.consumed_ts)
        .limit(limit)
        .cte("old")
        .prefix_with("MATERIALIZED")
    )
    key = tuple_(consumed.c.group_id, consumed.c.event_id)
    # `is_old` again, or PostgreSQL may read the whole table for the join. Counted by what it returns, since
    # SQLite's driver has no count for a statement that begins with WITH.
    forgetting = delete(consumed).where(key.in_(select(*old.c)), is_old).returning(consumed.c.event_id)
    forgotten = len((await connection.execute(forgetting)).all())
    letters = dead_letter_queue
    replayed = select(letters.c.dead_letter_id).where(letters.c.replayed_ts < before).limit(limit)
    await connection.execute(delete(letters).where(letters.c.dead_letter_id.in_(replayed)))
    return forgotten
