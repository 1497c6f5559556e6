"""Statements on `cluster_t` for the number of shards, and which rows of `schedule_t` belong to a shard."""

from typing import Any

from sqlalchemy import bindparam, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.cluster import cluster_t, scheduler_lock_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.instant import EPOCH
from foliot.model.lease import Shard

SHARDS = "shards"


def is_of(shard: Shard) -> tuple[Any, ...]:
    """Conditions on `schedule_t`. Empty if there is a single shard."""
    return () if shard.of == 1 else (schedule_t.c.slot % shard.of == shard.number,)


async def make_shards(connection: AsyncConnection, count: int) -> None:
    """In a new database, create this many shards without leaders."""
    if await shard_count(connection, default=0):
        return
    await connection.execute(insert(cluster_t).values(name=SHARDS, value=count))
    await connection.execute(
        insert(scheduler_lock_t),
        [
            {"lock_id": lock_id, "instance_id": "", "last_heartbeat": EPOCH, "epoch": 0}
            for lock_id in range(1, count + 1)
        ],
    )


async def shard_count(connection: AsyncConnection, default: int = 1) -> int:
    statement = select(cluster_t.c.value).where(cluster_t.c.name == bindparam("name", SHARDS))
    return (await connection.execute(statement)).scalar_one_or_none() or default
