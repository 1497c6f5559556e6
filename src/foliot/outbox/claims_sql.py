"""Statements on `consumer_claim_t`: what a consumer is about to handle, committed before the handler starts.

A process that dies in a handler leaves its claim behind. The process that takes over the partition finds it:
the claim has another owner, and the offset has not moved. The first time, it continues *carefully*, one event
at a time, past everything that the dead process may have read. A careful claim that is left behind counts as
a failed attempt of its event. So an event whose handler kills the process is tried `max_attempts` times, and
then becomes a dead letter.

A process that lives but could not finish, for example because the database went away, withdraws its claim.
"""

from typing import NamedTuple

from sqlalchemy import ColumnElement, exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect, Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.events import consumer_claim_t, consumer_offsets

CLAIM_GRACE_S = 3.0
"""Seconds that a claim keeps other consumers away, until its owner has locked the partition."""

_C = consumer_claim_t.c


class ConsumerClaim(NamedTuple):
    place: str
    """The partition of the outbox, or the topic and partition of Kafka."""
    offset: int
    crashes: int = 0
    """How often a process died while it handled only the event at this offset."""
    is_careful: bool = False
    """Whether to handle only one event, because a process may have died of it."""


async def make_claim(
    connection: AsyncConnection,
    dialect: Dialect,
    *,
    group: str,
    place: str,
    offset: int,
    owner: str,
    reach: int,
) -> ConsumerClaim:
    """Record that the owner is about to handle the event at this offset.

    `reach`: how many offsets a batch may read.
    """
    now = dialect.now()
    fresh = {"claim_offset": offset, "claimed_by": owner, "claimed_ts": now}
    made = await connection.execute(
        dialect.insert(consumer_claim_t)
        .values(group_id=group, place=place, **fresh)
        .on_conflict_do_nothing()
        .returning(_C.place)
    )
    if made.first() is not None:
        return ConsumerClaim(place, offset)
    row = (
        await connection.execute(select(consumer_claim_t).where(*_key(group, place)).with_for_update())
    ).one()
    is_same = row.claim_offset == offset
    was_careful = row.claim_offset < row.careful_until
    is_left_behind = is_same and row.claimed_by not in (None, owner)
    crashes = (row.crashes if is_same else 0) + (is_left_behind and was_careful)
    careful_until = max(row.careful_until, offset + reach) if is_left_behind else row.careful_until
    await connection.execute(
        update(consumer_claim_t)
        .where(*_key(group, place))
        .values(**fresh, crashes=crashes, careful_until=careful_until)
    )
    return ConsumerClaim(place, offset, crashes, offset < careful_until)


async def end_claim(connection: AsyncConnection, group: str, place: str) -> None:
    """Clear a claim whose events are handled. Call it in the transaction that moves the offset."""
    await connection.execute(
        update(consumer_claim_t).where(*_key(group, place)).values(claimed_by=None, crashes=0)
    )


class Claims(Statements):
    @transaction(Pool.CONSUMER)
    async def take_back(
        self, connection: AsyncConnection, group: str, claim: ConsumerClaim, owner: str
    ) -> None:
        """Withdraw a claim whose owner lives but did not finish.

        If another process has taken it over, it may have counted a crash: subtract that one.
        """
        mine = _key(group, claim.place)
        freed = await connection.execute(
            update(consumer_claim_t).where(*mine, _C.claimed_by == owner).values(claimed_by=None)
        )
        if not freed.rowcount:
            await connection.execute(
                update(consumer_claim_t)
                .where(*mine, _C.claim_offset == claim.offset, _C.crashes > 0)
                .values(crashes=_C.crashes - 1)
            )


def is_claimed_by_other(dialect: Dialect, owner: str, place: ColumnElement[str]) -> ColumnElement[bool]:
    """Condition on a row of `consumer_offsets`: another consumer is about to lock it."""
    return exists().where(
        _C.group_id == consumer_offsets.c.group_id,
        _C.place == place,
        _C.claimed_by.is_not(None),
        _C.claimed_by != owner,
        _C.claimed_ts > dialect.plus(dialect.now(), -CLAIM_GRACE_S),
    )


def _key(group: str, place: str) -> tuple[ColumnElement[bool], ...]:
    return _C.group_id == group, _C.place == place
