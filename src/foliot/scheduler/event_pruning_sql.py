"""Delete old events that every reader has passed.

A message may be deleted when it is old enough and every consumer group and relay has passed it. Messages are
deleted from the beginning of the log, so the rest has no gaps. A group or relay that no longer runs, and a
topic that a relay's broker refuses, block all messages that they have not passed. `status` lists them;
`foliot event groups delete` and `foliot event relays delete` remove them.
"""

from datetime import datetime, timedelta
from itertools import takewhile

from sqlalchemy import BigInteger, Uuid, delete, func, literal, select, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.tables.events import (
    consumed_event_t,
    consumer_offsets,
    dead_letter_queue,
    event_store_t,
    outbox_message_t,
    relay_parked_t,
    relay_t,
)
from foliot.model.ids import first_id_at

CONSUMED_KEPT = timedelta(days=7)
"""How long to remember that a group handled an event: as long as a broker may deliver it again."""
ALL = 2**63 - 1


async def prune_events(connection: AsyncConnection, dialect: Dialect, before: datetime, limit: int) -> int:
    """Delete the oldest messages and events from before this instant, at most `limit`; return how many."""
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
    # The id tells the age: ids grow with time, as offsets do, and the row that is read has it anyway.
    too_young = first_id_at(before)
    ids = list(takewhile(lambda each: each < too_young, oldest.scalars()))
    if ids:
        gone = dialect.rows("gone", {"id": Uuid()}, [(each,) for each in ids])
        for each in (event_store_t, outbox_message_t):
            await connection.execute(delete(each).where(each.c.id.in_(select(gone.c.id))))
    return len(ids)


async def prune_consumed(connection: AsyncConnection, now: datetime, before: datetime, limit: int) -> int:
    """Delete records of events that no broker will deliver again, and dead letters replayed long ago.

    Returns the number of deleted records.
    """
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
    # `is_old` is repeated: without it PostgreSQL may read the whole table for the join. The returned rows are
    # counted, since SQLite's driver has no row count for a statement that begins with WITH.
    forgetting = delete(consumed).where(key.in_(select(*old.c)), is_old).returning(consumed.c.event_id)
    forgotten = len((await connection.execute(forgetting)).all())
    letters = dead_letter_queue
    replayed = select(letters.c.dead_letter_id).where(letters.c.replayed_ts < before).limit(limit)
    await connection.execute(delete(letters).where(letters.c.dead_letter_id.in_(replayed)))
    return forgotten
