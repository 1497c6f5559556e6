"""What a scheduler reads about the cluster: the shards, their leaders, and the other schedulers.

All ages are by the store's clock, which is read in the same statement as the heartbeats.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import instance_t, scheduler_lock_t

SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True)
class SeenShard:
    """A row of `scheduler_lock_t`."""

    number: int
    holder: str
    """Empty: the shard was released, or never led."""
    heartbeat_age_s: float


@dataclass(frozen=True, slots=True)
class SeenScheduler:
    """A row of `instance_t` with the role scheduler."""

    instance_id: str
    heartbeat_age_s: float
    is_draining: bool


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    now: datetime | None
    """Time of the store's clock. None: there are no shards, so nothing to lead."""
    shards: tuple[SeenShard, ...]
    """In order of their numbers, from 0 on without a gap."""
    schedulers: tuple[SeenScheduler, ...]


class ClusterQueries(Statements):
    async def read_snapshot(self, *, live_s: float) -> ClusterSnapshot:
        """Return all shards, and the schedulers with a heartbeat in the last `live_s` seconds."""
        now = self._dialect.now().label("now")
        locks = select(scheduler_lock_t, now).order_by(scheduler_lock_t.c.lock_id)
        table = instance_t
        instances = select(
            table.c.instance_id, table.c.roles, table.c.last_heartbeat, table.c.draining, now
        ).where(table.c.last_heartbeat >= self._dialect.plus(self._dialect.now(), -live_s))
        async with self._database.read(Pool.LEASE) as connection:
            shards = (await connection.execute(locks)).all()
            seen = (await connection.execute(instances)).all()
        return ClusterSnapshot(
            shards[0].now if shards else None,
            tuple(SeenShard(number, row.instance_id, _age_s(row)) for number, row in enumerate(shards)),
            tuple(
                SeenScheduler(row.instance_id, _age_s(row), bool(row.draining))
                for row in seen
                if SCHEDULER in row.roles
            ),
        )

    async def say_present(self, instance_id: str) -> None:
        """Write only the heartbeat of a registered instance, in the shortest possible statement."""
        await self._change(instance_id, last_heartbeat=self._dialect.now())

    async def withdraw(self, instance_id: str) -> None:
        """Mark an instance that is about to stop, so that others no longer count on it."""
        await self._change(instance_id, draining=True)

    @transaction(Pool.LEASE)
    async def _change(self, connection: AsyncConnection, /, instance_id: str, **values: Any) -> None:
        await connection.execute(
            update(instance_t).where(instance_t.c.instance_id == instance_id).values(**values)
        )


def _age_s(row: Any) -> float:
    age_s: float = (row.now - row.last_heartbeat).total_seconds()
    return age_s
