"""Advance due schedules to their next fire times by one guarded UPDATE, shared by all kinds of firing."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Integer, String, Update, Uuid, bindparam, null, or_, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from foliot.db.columns import Batch, BatchColumns, Shape
from foliot.db.dialect import Dialect
from foliot.db.rows.shard_rows import is_of
from foliot.db.tables.schedules import schedule_t
from foliot.db.types import Instant
from foliot.model.lease import Shard
from foliot.planning.fire import PLAN_HOLDS, Firing


async def unlocked(
    connection: AsyncConnection, dialect: Dialect, firings: Sequence[Firing]
) -> Sequence[Firing]:
    """Return the firings whose schedule rows no other transaction has locked, and lock these rows."""
    ids = [(firing.due.schedule_id,) for firing in firings]
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, ids)
    result = await connection.execute(
        select(schedule_t.c.schedule_id)
        .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
        .with_for_update(key_share=True, skip_locked=True)
    )
    free = set(result.scalars())
    return [firing for firing in firings if firing.due.schedule_id in free]


def lay_out_planned(dialect: Dialect, firings: Sequence[Firing]) -> Batch:
    return _PLANNED.lay_out(
        dialect,
        [
            (
                firing.due.schedule_id,
                firing.due.fire_ts,
                firing.due.aggregate_version,
                firing.next and firing.next.fire_ts,
                firing.next and firing.next.run_ts,
                firing.fires,
                "completed" if firing.is_completed else "active",
            )
            for firing in firings
        ],
    )


_PLANNED = BatchColumns(
    "planned",
    {
        "schedule_id": Uuid(),
        "fire_ts": Instant(),
        "aggregate_version": BigInteger(),
        "next_fire_ts": Instant(),
        "next_run_ts": Instant(),
        "fires": Integer(),
        "state": String(),
    },
    by=("schedule_id", "fire_ts", "aggregate_version"),
)


def arguments_of(batch: Batch, now: datetime) -> dict[str, Any]:
    """Return the arguments of `advance_planned` for a batch that was planned at `now`."""
    return {**batch.arguments, "plan_ends": now + PLAN_HOLDS}


@lru_cache(maxsize=256)
def advance_planned(dialect: Dialect, shard: Shard, shape: Shape, *, counts_events: bool = False) -> Update:
    """Build the UPDATE that advances, and so locks, only the schedules that are still as planned."""
    table, planned = _PLANNED.table(dialect, shape)
    now = dialect.now()
    counted = {"event_seq": schedule_t.c.event_seq + planned["fires"]} if counts_events else {}
    return (
        update(schedule_t)
        .where(
            schedule_t.c.schedule_id == table.c.schedule_id,
            schedule_t.c.next_fire_ts == planned["fire_ts"],
            schedule_t.c.aggregate_version == planned["aggregate_version"],
            *is_of(shard),
            dialect.guard(schedule_t.c.active) == true(),
            or_(~schedule_t.c.paused, schedule_t.c.paused_until_ts <= now),
            dialect.guard(schedule_t.c.next_run_ts) <= now,
            now <= bindparam("plan_ends", type_=Instant()),
        )
        .values(
            next_fire_ts=planned["next_fire_ts"],
            next_run_ts=planned["next_run_ts"],
            run_count=schedule_t.c.run_count + planned["fires"],
            state=planned["state"],
            state_reason=null(),
            paused=False,
            paused_until_ts=null(),
            pause_reason=null(),
            **counted,
        )
    )


@lru_cache(maxsize=256)
def advance_and_name(dialect: Dialect, shard: Shard, shape: Shape) -> ReturningUpdate[Any]:
    """Advance planned schedules; return the id and name of each that was advanced."""
    advance = advance_planned(dialect, shard, shape)
    return advance.returning(schedule_t.c.schedule_id, schedule_t.c.schedule_name)
