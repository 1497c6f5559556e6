"""Statements on `scheduler_lock_t` and `cluster_t`: leadership of shards, and the fence.

A takeover locks the shard's row FOR UPDATE. A firing holds it FOR KEY SHARE until its COMMIT. So a takeover
waits for a firing in flight, and a later firing sees the new epoch. Heartbeats wait for neither, because they
change no key. (A takeover by plain UPDATE would not wait for a firing in flight.) Under SQLite every writer
holds the only write lock, which has the same effect.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.shard_rows import SHARDS, shard_count
from foliot.db.statements import Statements
from foliot.db.tables.cluster import cluster_t, scheduler_lock_t
from foliot.model.errors import FencedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instant import EPOCH
from foliot.model.lease import Lease, Shard
from foliot.planning.change import Author


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The state of a shard's lease, as the store read it."""

    lease: Lease | None
    """The caller's lease. None: the caller does not hold it."""
    store_now: datetime
    holder: str
    epoch: int
    is_contended: bool = False
    """The lease was stale at first, but another instance took it before the caller could lock it."""
    silent_s: float = 0.0
    """Seconds since the holder's last heartbeat, set when `take` was refused because the lease is fresh."""


class Leases(Statements):
    async def shard_count(self) -> int:
        async with self._database.read(Pool.LEASE) as connection:
            return await shard_count(connection)

    async def take(self, shard: Shard, instance_id: str, ttl_s: float) -> LeaseState:
        """Become the leader if the last heartbeat is older than the TTL. The epoch grows by one.

        A caller with another proof that the leader is gone may pass a shorter TTL.
        """
        # Read without a lock first: followers ask every second, and a lock would make firings wait.
        seen = (await self._database.fetch(Pool.LEASE, self._select(shard))).one_or_none()
        if seen is None:
            raise FencedError(shard.number, 0)
        if not _is_stale(seen, ttl_s):
            silent_s = (seen.store_now - seen.last_heartbeat).total_seconds()
            return LeaseState(None, seen.store_now, seen.instance_id, seen.epoch, silent_s=silent_s)

        async def take_over(connection: AsyncConnection) -> LeaseState:
            row = await self._lock(connection, shard)
            if row is None or not _is_stale(row, ttl_s):
                holder = "" if row is None else row.instance_id
                return LeaseState(None, seen.store_now, holder, seen.epoch, is_contended=True)
            if row.shards != shard.of:
                # The caller has an outdated number of shards: it would lead the wrong slots.
                raise FencedError(shard.number, row.epoch)
            epoch = row.epoch + 1
            await connection.execute(
                update(scheduler_lock_t)
                .where(scheduler_lock_t.c.lock_id == shard.lock_id)
                .values(instance_id=instance_id, epoch=epoch, last_heartbeat=self._database.dialect.now())
            )
            return LeaseState(Lease(shard, epoch, instance_id), row.store_now, instance_id, epoch)

        return await self._database.write(Pool.LEASE, take_over)

    async def _lock(self, connection: AsyncConnection, shard: Shard) -> Any:
        """Lock the shard's row for a takeover and return it.

        If another session holds the row, end overdue sessions first; no session is ended otherwise.
        """
        statement = self._select(shard).add_columns(_SHARDS)
        free = statement.with_for_update(of=scheduler_lock_t, skip_locked=True)
        row = (await connection.execute(free)).one_or_none()
        if row is not None:
            return row
        limit = self._database.limit(Pool.LEASE)
        if limit is not None:
            await self._database.dialect.end_overdue(connection, scheduler_lock_t, limit)
        locked = statement.with_for_update(of=scheduler_lock_t)
        return (await connection.execute(locked)).one_or_none()

    async def renew(self, lease: Lease) -> LeaseState:
        """Write a heartbeat if the epoch is still the caller's."""

        async def beat(connection: AsyncConnection) -> LeaseState:
            row = (
                await connection.execute(
                    update(scheduler_lock_t)
                    .where(*_held_by(lease))
                    .values(last_heartbeat=self._database.dialect.now())
                    .returning(scheduler_lock_t.c.last_heartbeat)
                )
            ).one_or_none()
            if row is not None:
                return LeaseState(lease, row.last_heartbeat, lease.instance_id, lease.epoch)
            other = (await connection.execute(self._select(lease.shard))).one_or_none()
            if other is None:
                raise FencedError(lease.shard.number, lease.epoch)
            return LeaseState(None, other.store_now, other.instance_id, other.epoch)

        return await self._database.write(Pool.LEASE, beat)

    async def release(self, lease: Lease) -> None:
        """Release the lease at once. Does nothing if the caller does not hold it any more."""

        async def let_go(connection: AsyncConnection) -> None:
            await connection.execute(
                update(scheduler_lock_t).where(*_held_by(lease)).values(instance_id="", last_heartbeat=EPOCH)
            )

        await self._database.write(Pool.LEASE, let_go)

    async def reshard(self, count: int, author: Author | None = None) -> int:
        """Change the number of shards and return the previous one. An unchanged number changes nothing."""

        async def rewrite(connection: AsyncConnection) -> int:
            rows = (
                await connection.execute(
                    select(scheduler_lock_t.c.epoch).order_by(scheduler_lock_t.c.lock_id).with_for_update()
                )
            ).scalars()
            epochs = list(rows)
            before = await shard_count(connection, default=0)
            if before == count:
                return before
            # One above all existing epochs: no epoch is issued twice, even if a shard is removed and added.
            epoch = max(epochs, default=0) + 1
            await connection.execute(delete(scheduler_lock_t))
            await connection.execute(
                insert(scheduler_lock_t),
                [
                    {"lock_id": lock_id, "instance_id": "", "last_heartbeat": EPOCH, "epoch": epoch}
                    for lock_id in range(1, count + 1)
                ],
            )
            await connection.execute(update(cluster_t).where(cluster_t.c.name == SHARDS).values(value=count))
            await record_audit(
                connection,
                self._database.dialect,
                author or Author(),
                Action.CLUSTER_RESHARDED,
                SHARDS,
                host_id=DEFAULT_HOST_ID,
                before={"shards": before},
                after={"shards": count},
            )
            return before

        return await self._database.write(Pool.LEASE, rewrite)

    def _select(self, shard: Shard) -> Any:
        return select(
            scheduler_lock_t.c.instance_id,
            scheduler_lock_t.c.last_heartbeat,
            scheduler_lock_t.c.epoch,
            self._database.dialect.now().label("store_now"),
        ).where(scheduler_lock_t.c.lock_id == shard.lock_id)


_SHARDS = select(cluster_t.c.value).where(cluster_t.c.name == SHARDS).scalar_subquery().label("shards")

_FENCE = (
    select(scheduler_lock_t.c.epoch)
    .where(*(scheduler_lock_t.c[name] == bindparam(name) for name in ("lock_id", "epoch", "instance_id")))
    .with_for_update(read=True, key_share=True)
)


async def require_lease(connection: AsyncConnection, lease: Lease) -> None:
    """Check the fence: lock the shard's row until the transaction ends, or raise FencedError."""
    epoch = (
        await connection.execute(
            _FENCE,
            {"lock_id": lease.shard.lock_id, "epoch": lease.epoch, "instance_id": lease.instance_id},
        )
    ).scalar_one_or_none()
    if epoch is None:
        raise FencedError(lease.shard.number, lease.epoch)


def _held_by(lease: Lease) -> tuple[Any, ...]:
    return (
        scheduler_lock_t.c.lock_id == lease.shard.lock_id,
        scheduler_lock_t.c.epoch == lease.epoch,
        scheduler_lock_t.c.instance_id == lease.instance_id,
    )


def _is_stale(row: Any, ttl_s: float) -> bool:
    age = row.store_now - row.last_heartbeat
    # A heartbeat in the future means that the database's clock was set back. Without this, nobody would lead
    # until the clock reaches that time again. A takeover is safe at any time, because of the fence.
    return bool(age > timedelta(seconds=ttl_s) or age < -timedelta(seconds=abs(ttl_s)))
