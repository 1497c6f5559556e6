"""Statements on `relay_t`: the active relay's lease and offset.

Lease and offset are in one row. So moving the offset has the condition that the relay is still active: a
relay that was replaced can't move it. A takeover locks the row FOR UPDATE and checks it again. Under SQLite
every writer holds the only write lock, which has the same effect.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Text, cast, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import OFFSETS
from foliot.db.tables.cluster import cluster_t
from foliot.db.tables.events import log_counter, outbox_message_t, relay_parked_t, relay_t
from foliot.model.errors import FoliotError
from foliot.model.instant import EPOCH
from foliot.outbox.dead_letters_sql import DeadLetterRows, add_dead_letter
from foliot.queries.outbox_list import OutboxMessage

DEFAULT_RELAY = "default"
RELAY_GROUP = f"relay:{DEFAULT_RELAY}"
"""Consumer group name of the relay's dead letters."""
FIRST_OFFSET = 1
"""A new relay starts with the first event ever written."""
OUTBOX = "outbox"
"""The row of `cluster_t` with an id that distinguishes this outbox from others at the same broker."""


class RelayReplacedError(FoliotError):
    """Another relay has taken over."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"another relay has taken over from epoch {epoch}")
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class RelayLeaseState:
    """State of the relay's lease, as the store read it."""

    is_ours: bool
    store_now: datetime
    epoch: int
    next_offset: int
    lag: int
    """Number of messages that are committed but not yet confirmed by the broker."""
    is_contended: bool = False
    """The lease was stale at first, but another relay took it before the caller could lock it."""


class Relays:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.dead_letters = DeadLetterRows(database)

    # --- the lease --------------------------------------------------------------------------------

    async def take(self, instance_id: str, ttl_s: float) -> RelayLeaseState:
        """Become the active relay if the last heartbeat is older than the TTL. The epoch grows by one."""
        # Read without a lock first: standby relays ask every second.
        seen = await self._read_row()
        if seen is None:
            await self._make()
            seen = await self._read_row()
            assert seen is not None, "the row was made, and nobody deletes it"
        if not _is_stale(seen, ttl_s):
            return _standing(seen, is_ours=False)

        async def take_over(connection: AsyncConnection) -> RelayLeaseState:
            row = (await connection.execute(self._select().with_for_update(of=relay_t))).one()
            if not _is_stale(row, ttl_s):
                return _standing(row, is_ours=False, is_contended=True)
            values = {"instance_id": instance_id, "epoch": row.epoch + 1}
            await connection.execute(
                update(relay_t)
                .where(relay_t.c.relay_name == DEFAULT_RELAY)
                .values(**values, last_heartbeat=self._database.dialect.now())
            )
            return RelayLeaseState(True, row.store_now, row.epoch + 1, row.next_offset, _lag(row))

        return await self._database.write(Pool.LEASE, take_over)

    async def renew(self, instance_id: str, epoch: int) -> RelayLeaseState:
        """Write a heartbeat if the epoch is still the caller's."""

        async def beat(connection: AsyncConnection) -> RelayLeaseState:
            result = await connection.execute(
                update(relay_t)
                .where(*_held_by(instance_id, epoch))
                .values(last_heartbeat=self._database.dialect.now())
            )
            row = (await connection.execute(self._select())).one()
            return _standing(row, is_ours=result.rowcount == 1)

        return await self._database.write(Pool.LEASE, beat)

    async def release(self, instance_id: str, epoch: int, *, above: int = 0) -> None:
        """Release the lease at once. Does nothing if the caller does not hold it any more.

        The next epoch will also be higher than `above`.
        """

        async def let_go(connection: AsyncConnection) -> None:
            await connection.execute(
                update(relay_t)
                .where(*_held_by(instance_id, epoch))
                .values(instance_id="", last_heartbeat=EPOCH, epoch=max(epoch, above))
            )

        await self._database.write(Pool.LEASE, let_go)

    # --- the offset -------------------------------------------------------------------------------

    async def position(self, instance_id: str, epoch: int) -> int:
        """Return the offset to continue with. Raises RelayReplacedError."""
        statement = select(relay_t.c.next_offset).where(*_held_by(instance_id, epoch))
        offset: int | None = (await self._database.fetch(Pool.WORK, statement)).scalar_one_or_none()
        if offset is None:
            raise RelayReplacedError(epoch)
        return offset

    async def advance(self, instance_id: str, epoch: int, next_offset: int) -> int:
        """Record that the broker has all messages before this offset. Return the number still unsent.

        Raises RelayReplacedError.
        """

        async def move(connection: AsyncConnection) -> int:
            statement = (
                update(relay_t)
                .where(*_held_by(instance_id, epoch), relay_t.c.next_offset <= next_offset)
                .values(next_offset=next_offset)
            )
            if (await connection.execute(statement)).rowcount != 1:
                raise RelayReplacedError(epoch)
            return _lag((await connection.execute(self._select())).one())

        return await self._database.write(Pool.WORK, move)

    async def read(
        self, offset: int, *, limit: int, topic: str | None = None, before: int | None = None
    ) -> list[OutboxMessage]:
        """Return messages of all hosts from this offset on, in commit order. `topic` None: of all topics."""
        table = outbox_message_t
        statement = select(table).where(table.c.c_offset >= offset).order_by(table.c.c_offset).limit(limit)
        if topic is not None:
            statement = statement.where(table.c.event_topic == topic)
        if before is not None:
            statement = statement.where(table.c.c_offset < before)
        return [OutboxMessage(**row._mapping) for row in await self._database.fetch(Pool.WORK, statement)]

    # --- what the broker refuses ------------------------------------------------------------------

    async def refuse(
        self,
        instance_id: str,
        epoch: int,
        message: OutboxMessage,
        reason: str,
        *,
        topic: str | None = None,
    ) -> None:
        """Move a message to the dead letters and continue behind it. Raises RelayReplacedError.

        `topic`: the message belongs to this parked topic, whose own offset moves.
        """

        async def work(connection: AsyncConnection) -> None:
            await self._require(connection, instance_id, epoch)
            await add_dead_letter(
                connection,
                self._database.dialect,
                group=RELAY_GROUP,
                partition_id=0,
                transaction_id=message.transaction_id,
                events=[document_of(message)],
                error=reason,
                traceback=None,
                attempts=1,
            )
            table = relay_t if topic is None else relay_parked_t
            its = table.c.relay_name == DEFAULT_RELAY
            mine = its if topic is None else its & (relay_parked_t.c.event_topic == topic)
            await connection.execute(update(table).where(mine).values(next_offset=message.c_offset + 1))

        await self._database.write(Pool.WORK, work)

    async def park(self, instance_id: str, epoch: int, topic: str, offset: int, reason: str) -> None:
        """Leave a topic out from this offset on, or record that the broker still refuses it.

        Raises RelayReplacedError.
        """
        now = self._database.dialect.now()

        async def work(connection: AsyncConnection) -> None:
            await self._require(connection, instance_id, epoch)
            statement = self._database.dialect.insert(relay_parked_t).values(
                relay_name=DEFAULT_RELAY,
                event_topic=topic,
                next_offset=offset,
                reason=reason,
                since_ts=now,
                tried_ts=now,
            )
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[relay_parked_t.c.relay_name, relay_parked_t.c.event_topic],
                    set_={"reason": reason, "tried_ts": now},
                )
            )

        await self._database.write(Pool.WORK, work)

    async def move_parked(self, instance_id: str, epoch: int, topic: str, offset: int | None) -> None:
        """Record that the broker has all messages of the topic before this offset. None: unpark the topic.

        Raises RelayReplacedError.
        """
        mine = (relay_parked_t.c.relay_name == DEFAULT_RELAY, relay_parked_t.c.event_topic == topic)

        async def work(connection: AsyncConnection) -> None:
            await self._require(connection, instance_id, epoch)
            if offset is None:
                await connection.execute(delete(relay_parked_t).where(*mine))
            else:
                await connection.execute(update(relay_parked_t).where(*mine).values(next_offset=offset))

        await self._database.write(Pool.WORK, work)

    async def parked(self) -> dict[str, int]:
        """Return the parked topics with the offset where each continues, least recently tried first."""
        statement = (
            select(relay_parked_t.c.event_topic, relay_parked_t.c.next_offset)
            .where(relay_parked_t.c.relay_name == DEFAULT_RELAY)
            .order_by(relay_parked_t.c.tried_ts)
        )
        return {row[0]: row[1] for row in await self._database.fetch(Pool.WORK, statement)}

    async def _require(self, connection: AsyncConnection, instance_id: str, epoch: int) -> None:
        held = select(relay_t.c.epoch).where(*_held_by(instance_id, epoch)).with_for_update()
        if (await connection.execute(held)).first() is None:
            raise RelayReplacedError(epoch)

    async def outbox_id(self) -> str:
        """Return the id by which a broker distinguishes this outbox from those of other databases.

        It is created once and never changes.
        """
        statement = select(cast(cluster_t.c.value, Text)).where(cluster_t.c.name == OUTBOX)
        found: str | None = (await self._database.fetch(Pool.WORK, statement)).scalar_one_or_none()
        if found is not None:
            return found

        async def make(connection: AsyncConnection) -> str:
            insert = self._database.dialect.insert(cluster_t)
            await connection.execute(
                insert.values(name=OUTBOX, value=secrets.randbelow(2**53)).on_conflict_do_nothing()
            )
            made: str = (await connection.execute(statement)).scalar_one()
            return made

        return await self._database.write(Pool.WORK, make)

    # --- the row ----------------------------------------------------------------------------------

    def _select(self) -> Any:
        return (
            select(
                relay_t.c.last_heartbeat,
                relay_t.c.epoch,
                relay_t.c.next_offset,
                log_counter.c.next_offset.label("end_offset"),
                self._database.dialect.now().label("store_now"),
            )
            .join_from(relay_t, log_counter, log_counter.c.id == OFFSETS)
            .where(relay_t.c.relay_name == DEFAULT_RELAY)
        )

    async def _read_row(self) -> Any | None:
        return (await self._database.fetch(Pool.LEASE, self._select())).one_or_none()

    async def _make(self) -> None:
        async def work(connection: AsyncConnection) -> None:
            insert = self._database.dialect.insert(relay_t).values(
                relay_name=DEFAULT_RELAY,
                instance_id="",
                last_heartbeat=EPOCH,
                epoch=0,
                next_offset=FIRST_OFFSET,
            )
            await connection.execute(insert.on_conflict_do_nothing())

        await self._database.write(Pool.LEASE, work)


def document_of(message: OutboxMessage) -> dict[str, Any]:
    """Return a message as a dead letter stores it: like a consumer's event, with all fields to send."""
    return {
        "id": str(message.id),
        "type": message.event_type,
        "subject": str(message.payload.get("subject") or message.aggregate_id),
        "time": message.event_ts.isoformat(),
        "host_id": str(message.host_id),
        "user_id": str(message.user_id),
        "nonce": message.nonce,
        "aggregate_id": message.aggregate_id,
        "aggregate_version": message.aggregate_version,
        "aggregate_type": message.aggregate_type,
        "topic": message.event_topic,
        "offset": message.c_offset,
        "transaction_id": str(message.transaction_id),
        "transaction_ordinal": message.transaction_ordinal,
        "transaction_count": message.transaction_count,
        "payload": message.payload,
    }


def message_of(document: dict[str, Any]) -> OutboxMessage:
    return OutboxMessage(
        id=UUID(document["id"]),
        host_id=UUID(document["host_id"]),
        user_id=UUID(document["user_id"]),
        nonce=document["nonce"],
        aggregate_id=document["aggregate_id"],
        aggregate_version=document["aggregate_version"],
        aggregate_type=document["aggregate_type"],
        event_type=document["type"],
        event_ts=datetime.fromisoformat(document["time"]),
        payload=document["payload"],
        metadata=None,
        c_offset=document["offset"],
        transaction_id=UUID(document["transaction_id"]),
        transaction_ordinal=document["transaction_ordinal"],
        transaction_count=document["transaction_count"],
        event_topic=document["topic"],
    )


def _held_by(instance_id: str, epoch: int) -> tuple[Any, ...]:
    return (
        relay_t.c.relay_name == DEFAULT_RELAY,
        relay_t.c.epoch == epoch,
        relay_t.c.instance_id == instance_id,
    )


def _standing(row: Any, *, is_ours: bool, is_contended: bool = False) -> RelayLeaseState:
    return RelayLeaseState(is_ours, row.store_now, row.epoch, row.next_offset, _lag(row), is_contended)


def _lag(row: Any) -> int:
    return max(0, int(row.end_offset - row.next_offset))


def _is_stale(row: Any, ttl_s: float) -> bool:
    age = row.store_now - row.last_heartbeat
    # A heartbeat in the future: the database's clock was set back. A takeover is safe at any time.
    return bool(age > timedelta(seconds=ttl_s) or age < -timedelta(seconds=abs(ttl_s)))
