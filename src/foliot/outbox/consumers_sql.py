"""Statements on `consumer_offsets` and `consumed_event_t`: how far consumer groups have read the outbox.

A group has a row for each of its partitions. The consumer that handles a batch keeps that row locked until
COMMIT, and others skip it (SKIP LOCKED). The offset moves in the same transaction. So a batch belongs to one
consumer, and a crash leaves all of it or nothing. Under SQLite every writer holds the only write lock.

`log_counter` holds the end of the log. Everything before it is committed, and nothing is ever inserted in
between (`db/rows/event_rows.py`), so an offset that was passed is never read again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    String,
    Uuid,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Dialect, Limit, Pool
from foliot.db.rows.event_rows import OFFSETS
from foliot.db.tables.events import (
    consumed_event_t,
    consumer_claim_t,
    consumer_group_t,
    consumer_offsets,
    log_counter,
    outbox_message_t,
)
from foliot.outbox.claims_sql import Claims, ConsumerClaim, is_claimed_by_other, make_claim
from foliot.outbox.dead_letters_sql import DeadLetterRows

T = TypeVar("T")


class PartitionPosition(NamedTuple):
    """How far a partition of a group has read."""

    partition_id: int
    partitions: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class GroupPositions:
    """Positions of a group's partitions, and the end of the log, at one moment."""

    positions: tuple[PartitionPosition, ...]
    log_end: int
    """The offset that the next event gets."""

    @property
    def partitions(self) -> int:
        """The number of partitions; 0: the group is new and has no rows yet."""
        return self.positions[0].partitions if self.positions else 0

    @property
    def is_even(self) -> bool:
        """Whether all partitions are at the same offset."""
        return len({each.next_offset for each in self.positions}) == 1

    @property
    def furthest(self) -> int:
        return max(each.next_offset for each in self.positions)

    @property
    def lag(self) -> int:
        """How many offsets the slowest partition is behind the end of the log."""
        return max((self.log_end - each.next_offset for each in self.positions), default=0)


class Consumers:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect = database.dialect
        self.claims = Claims(database)
        self.dead_letters = DeadLetterRows(database)

    async def standing(self, group: str) -> GroupPositions:
        table = consumer_offsets
        async with self._database.read(Pool.CONSUMER) as connection:
            # Read the log first: then a group is never ahead of it.
            end = (await connection.execute(log_end())).scalar_one()
            rows = await connection.execute(
                select(table.c.partition_id, table.c.partitions, table.c.next_offset)
                .where(table.c.group_id == group)
                .order_by(table.c.partition_id)
            )
            return GroupPositions(tuple(PartitionPosition(*row) for row in rows), end)

    async def begin_group(self, group: str, partitions: int, *, from_end: bool) -> None:
        """Create the rows of a group, unless it has them.

        It starts at the oldest message, or with `from_end` after the last.
        """

        async def work(connection: AsyncConnection) -> None:
            # Under the log's own lock: of several processes that create a group, one does, and no event
            # commits meanwhile.
            end = (await connection.execute(log_end().with_for_update())).scalar_one()
            mine = consumer_offsets.c.group_id == group
            if (await connection.execute(select(consumer_offsets.c.group_id).where(mine))).first():
                return
            first = (await connection.execute(select(func.min(outbox_message_t.c.c_offset)))).scalar()
            await self._insert(connection, group, partitions, end if from_end else first or end)

        await self._database.write(Pool.CONSUMER, work)

    async def repartition(self, group: str, partitions: int) -> bool:
        """Change the number of partitions, if all are at one offset; return whether the group has it now."""
        table = consumer_offsets

        async def work(connection: AsyncConnection) -> bool:
            rows = (
                await connection.execute(
                    select(table.c.partition_id, table.c.partitions, table.c.next_offset)
                    .where(table.c.group_id == group)
                    .with_for_update(skip_locked=True)
                )
            ).all()
            locked = GroupPositions(tuple(PartitionPosition(*row) for row in rows), 0)
            if locked.partitions == partitions:
                return True
            if len(rows) != locked.partitions or not locked.is_even:
                return False
            await connection.execute(delete(table).where(table.c.group_id == group))
            await self._insert(connection, group, partitions, locked.furthest)
            return True

        return await self._database.write(Pool.CONSUMER, work)

    async def _insert(self, connection: AsyncConnection, group: str, partitions: int, offset: int) -> None:
        now = self.dialect.now()
        for partition_id in range(partitions):
            await connection.execute(
                insert(consumer_offsets).values(
                    group_id=group,
                    partition_id=partition_id,
                    partitions=partitions,
                    next_offset=offset,
                    updated_ts=now,
                )
            )

    async def claim(self, group: str, *, before: int, owner: str, reach: int) -> ConsumerClaim | None:
        """Claim the free partition that is furthest behind `before`; None: there is none."""
        table = consumer_offsets
        place = cast(table.c.partition_id, String)

        async def work(connection: AsyncConnection) -> ConsumerClaim | None:
            found = await connection.execute(
                select(table.c.partition_id, table.c.next_offset)
                .where(
                    table.c.group_id == group,
                    table.c.next_offset < before,
                    ~is_claimed_by_other(self.dialect, owner, place),
                )
                .order_by(table.c.next_offset, table.c.partition_id)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            row = found.one_or_none()
            if row is None:
                return None
            return await make_claim(
                connection,
                self.dialect,
                group=group,
                place=str(row.partition_id),
                offset=row.next_offset,
                owner=owner,
                reach=reach,
            )

        return await self._database.write(Pool.CONSUMER, work)

    async def claim_elsewhere(
        self, group: str, place: str, offset: int, *, owner: str, reach: int
    ) -> ConsumerClaim:
        """Claim a partition that an external broker, such as Kafka, has assigned to this consumer."""

        async def work(connection: AsyncConnection) -> ConsumerClaim:
            return await make_claim(
                connection, self.dialect, group=group, place=place, offset=offset, owner=owner, reach=reach
            )

        return await self._database.write(Pool.CONSUMER, work)

    async def see(self, group: str, source: str) -> None:
        """Record that a consumer of this group runs."""
        table, now = consumer_group_t, self.dialect.now()

        async def work(connection: AsyncConnection) -> None:
            statement = self.dialect.insert(table).values(group_id=group, source=source, seen_ts=now)
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[table.c.group_id], set_={"source": source, "seen_ts": now}
                )
            )

        await self._database.write(Pool.CONSUMER, work, is_single=True)

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]], *, idle_s: float) -> T:
        """Run the work in a transaction that may be idle for `idle_s` seconds, while a handler is busy."""

        async def within(connection: AsyncConnection) -> T:
            await self.dialect.limit(connection, Limit(idle_s=idle_s))
            return await work(connection)

        return await self._database.write(Pool.CONSUMER, within)


# --- inside the transaction of a batch ----------------------------------------------------------------


async def take_partition(
    connection: AsyncConnection, group: str, claim: ConsumerClaim, owner: str
) -> PartitionPosition | None:
    """Lock the claimed partition; return None if another consumer has taken it meanwhile."""
    table, claims = consumer_offsets, consumer_claim_t
    is_mine = exists().where(
        claims.c.group_id == group, claims.c.place == claim.place, claims.c.claimed_by == owner
    )
    found = await connection.execute(
        select(table.c.partition_id, table.c.partitions, table.c.next_offset)
        .where(
            table.c.group_id == group,
            table.c.partition_id == int(claim.place),
            table.c.next_offset == claim.offset,
            is_mine,
        )
        .with_for_update(skip_locked=True)
    )
    row = found.one_or_none()
    return None if row is None else PartitionPosition(*row)


async def move_partition(
    connection: AsyncConnection, dialect: Dialect, group: str, position: PartitionPosition, next_offset: int
) -> None:
    table = consumer_offsets
    moved = await connection.execute(
        update(table)
        .where(
            table.c.group_id == group,
            table.c.partition_id == position.partition_id,
            table.c.next_offset == position.next_offset,
        )
        .values(next_offset=next_offset, updated_ts=dialect.now())
    )
    if moved.rowcount != 1:
        raise AssertionError(f"group {group} has moved under a lock")


async def end_of_stretch(connection: AsyncConnection, end: int, *, log_end: int) -> int:
    """Return where to stop reading: at `end`, or later, at the end of an outbox transaction that spans it."""
    if end >= log_end:
        return log_end
    last = select(_transaction_end()).where(outbox_message_t.c.c_offset == end - 1)
    return (await connection.execute(last)).scalar_one_or_none() or end


async def read_positions(
    connection: AsyncConnection, first: int, end: int, topics: Sequence[str] | None
) -> Sequence[Any]:
    """Return (c_offset, host_id, transaction_id, transaction_end) of messages from `first` to before `end`.

    `topics` None: all topics.
    """
    table = outbox_message_t
    statement = (
        select(table.c.c_offset, table.c.host_id, table.c.transaction_id, _transaction_end())
        .where(table.c.c_offset >= first, table.c.c_offset < end)
        .order_by(table.c.c_offset)
    )
    if topics is not None:
        statement = statement.where(table.c.event_topic.in_(topics))
    return (await connection.execute(statement)).all()


async def read_messages(
    connection: AsyncConnection, dialect: Dialect, offsets: Sequence[int]
) -> Sequence[Any]:
    """Return the messages with these offsets, in order."""
    table = outbox_message_t
    wanted = dialect.rows("wanted", {"c_offset": BigInteger()}, [(each,) for each in offsets])
    statement = (
        select(table)
        .where(
            table.c.c_offset.in_(select(wanted.c.c_offset)),
            # Redundant, but an index range: without it PostgreSQL may read the whole table for the join.
            table.c.c_offset >= offsets[0],
            table.c.c_offset <= offsets[-1],
        )
        .order_by(table.c.c_offset)
    )
    return (await connection.execute(statement)).all()


async def mark_consumed(
    connection: AsyncConnection, dialect: Dialect, group: str, event_ids: Sequence[UUID]
) -> set[UUID]:
    """Record that the group handles these events; return those that it has not handled before.

    If another transaction handles one of them at this moment, waits until that one has ended.
    """
    table = consumed_event_t
    # Sorted: two transactions that record the same events must not deadlock.
    rows = [(each,) for each in sorted(set(event_ids))]
    wanted = dialect.rows("wanted", {"event_id": Uuid()}, rows)
    source = select(literal(group), wanted.c.event_id, dialect.now()).select_from(wanted).where(true())
    statement = (
        dialect.insert(table)
        .from_select(["group_id", "event_id", "consumed_ts"], source)
        .on_conflict_do_nothing()
        .returning(table.c.event_id)
    )
    return set((await connection.execute(statement)).scalars())


async def forget_consumed(
    connection: AsyncConnection, dialect: Dialect, group: str, event_ids: Sequence[UUID]
) -> None:
    """Delete the records of events that were marked as consumed but not handled."""
    table = consumed_event_t
    wanted = dialect.rows("wanted", {"event_id": Uuid()}, [(each,) for each in event_ids])
    await connection.execute(
        delete(table).where(table.c.group_id == group, table.c.event_id.in_(select(wanted.c.event_id)))
    )


def _transaction_end() -> ColumnElement[int]:
    table = outbox_message_t
    return (table.c.c_offset - table.c.transaction_ordinal + table.c.transaction_count).label(
        "transaction_end"
    )


def log_end() -> Any:
    """Select the offset that the next event gets."""
    return select(log_counter.c.next_offset).where(log_counter.c.id == literal(OFFSETS))
