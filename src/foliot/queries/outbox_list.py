"""Reads `outbox_message_t`: the events of a host, in commit order.

Offsets have no gaps and are assigned as the last step before COMMIT. So a reader that has read up to an
offset has missed nothing before it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select

from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.events import outbox_message_t


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A committed event."""

    id: UUID
    host_id: UUID
    user_id: UUID
    nonce: int
    aggregate_id: str
    aggregate_version: int
    aggregate_type: str
    event_type: str
    event_ts: datetime
    payload: dict[str, Any]
    """The whole CloudEvent."""
    metadata: dict[str, Any] | None
    c_offset: int
    transaction_id: UUID
    transaction_ordinal: int
    transaction_count: int
    event_topic: str


class OutboxList(Statements):
    async def after(self, host_id: UUID, offset: int, *, limit: int = 50) -> list[OutboxMessage]:
        """Return the host's next messages after an offset, oldest first. Empty for an unknown host."""
        table = outbox_message_t
        statement = (
            select(table)
            .where(table.c.host_id == host_id, table.c.c_offset > offset)
            .order_by(table.c.c_offset)
            .limit(limit)
        )
        return [OutboxMessage(**row._mapping) for row in await self._database.fetch(Pool.API, statement)]

    async def latest_offset(self, host_id: UUID) -> int:
        """Return the offset of the host's latest message. 0: there is none."""
        table = outbox_message_t
        statement = (
            select(table.c.c_offset)
            .where(table.c.host_id == host_id)
            .order_by(table.c.c_offset.desc())
            .limit(1)
        )
        return (await self._database.fetch(Pool.API, statement)).scalar_one_or_none() or 0
