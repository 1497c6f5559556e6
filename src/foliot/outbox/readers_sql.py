"""Administration of the outbox: its readers, their positions, refused topics and dead letters.

Events of all hosts are in one log, so consumer groups, relays and dead letters belong to no single host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.events import (
    consumer_claim_t,
    consumer_group_t,
    consumer_offsets,
    dead_letter_queue,
    outbox_message_t,
    relay_parked_t,
    relay_t,
)
from foliot.model.errors import ConflictError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID, instant_of_id
from foliot.outbox.consumers_sql import log_end
from foliot.outbox.dead_letters_sql import DeadLetter, DeadLetterRows
from foliot.planning.change import Author

RUNNING_S = 120.0
"""A group or relay that was seen within this many seconds is running. A relay's lease is much shorter."""
BEHIND_S = 60.0
ABANDONED_S = 3600.0
"""A reader that is not running and has had an unread event for this many seconds is abandoned."""
MAX_REFUSED = 20
"""Maximum number of refused topics listed per relay."""
MAX_GROUPS = 1_000


class ReaderState(StrEnum):
    OK = "ok"
    BEHIND = "behind"
    """Its oldest unread event has waited for more than a minute."""
    ABANDONED = "abandoned"
    """No process runs it, and it prevents events from being pruned."""


def state_of(*, is_running: bool, oldest_age_s: float | None) -> ReaderState:
    if oldest_age_s is None or oldest_age_s < BEHIND_S:
        return ReaderState.OK
    return ReaderState.ABANDONED if not is_running and oldest_age_s >= ABANDONED_S else ReaderState.BEHIND


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    group: str
    source: str
    partitions: int
    """0: Kafka manages the group's partitions and offsets."""
    next_offset: int | None
    lag: int
    oldest_unread_ts: datetime | None
    """When its oldest unread event was created; None: nothing is unread, or Kafka manages the offsets."""
    seen_ts: datetime
    """When a consumer of the group was last seen running."""
    is_running: bool
    state: ReaderState


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTopic:
    topic: str
    next_offset: int
    reason: str
    since_ts: datetime
    tried_ts: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRecord:
    name: str
    instance_id: str | None
    next_offset: int
    lag: int
    oldest_unread_ts: datetime | None
    is_running: bool
    state: ReaderState
    refused_topics: Sequence[RefusedTopic]

    @property
    def is_well(self) -> bool:
        return self.state is ReaderState.OK and not self.refused_topics


class EventAdmin:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._letters = DeadLetterRows(database)

    # --- reading ----------------------------------------------------------------------------------

    async def groups(self, *, limit: int = MAX_GROUPS, after: str = "") -> list[GroupRecord]:
        """Return consumer groups, sorted by name. `after`: the last name of the page before."""
        offsets, seen = consumer_offsets, consumer_group_t
        async with self._database.read(Pool.API) as connection:
            now, end = await self._now_and_end(connection)
            by_offset = await connection.execute(
                select(
                    offsets.c.group_id,
                    func.count().label("partitions"),
                    func.min(offsets.c.next_offset).label("next_offset"),
                    func.max(offsets.c.updated_ts).label("seen_ts"),
                )
                .where(offsets.c.group_id > after)
                .group_by(offsets.c.group_id)
                .order_by(offsets.c.group_id)
                .limit(limit)
            )
            standing = {row.group_id: row for row in by_offset}
            running = await connection.execute(
                select(seen).where(seen.c.group_id > after).order_by(seen.c.group_id).limit(limit)
            )
            known = {row.group_id: row for row in running}
            names = sorted({*standing, *known})[:limit]
            return [
                await self._group(connection, name, standing.get(name), known.get(name), now, end)
                for name in names
            ]

    async def _group(
        self, connection: AsyncConnection, name: str, standing: Any, known: Any, now: datetime, end: int
    ) -> GroupRecord:
        next_offset = None if standing is None else standing.next_offset
        oldest_ts = await self._oldest(connection, next_offset, end)
        seen_ts: datetime = max(each.seen_ts for each in (standing, known) if each is not None)
        is_running = (now - seen_ts).total_seconds() < RUNNING_S
        return GroupRecord(
            group=name,
            source="database" if known is None else known.source,
            partitions=0 if standing is None else standing.partitions,
            next_offset=next_offset,
            lag=0 if next_offset is None else max(0, end - next_offset),
            oldest_unread_ts=oldest_ts,
            seen_ts=seen_ts,
            is_running=is_running,
            state=state_of(is_running=is_running, oldest_age_s=_age(now, oldest_ts)),
        )

    async def relays(self) -> list[RelayRecord]:
        async with self._database.read(Pool.API) as connection:
            now, end = await self._now_and_end(connection)
            rows = (await connection.execute(select(relay_t).order_by(relay_t.c.relay_name))).all()
            return [await self._relay(connection, row, now, end) for row in rows]

    async def _relay(self, connection: AsyncConnection, row: Any, now: datetime, end: int) -> RelayRecord:
        table = relay_parked_t
        parked = await connection.execute(
            select(table)
            .where(table.c.relay_name == row.relay_name)
            .order_by(table.c.since_ts, table.c.event_topic)
            .limit(MAX_REFUSED)
        )
        oldest_ts = await self._oldest(connection, row.next_offset, end)
        is_running = bool(row.instance_id) and now - row.last_heartbeat < timedelta(seconds=RUNNING_S)
        return RelayRecord(
            name=row.relay_name,
            instance_id=row.instance_id or None,
            next_offset=row.next_offset,
            lag=max(0, end - row.next_offset),
            oldest_unread_ts=oldest_ts,
            is_running=is_running,
            state=state_of(is_running=is_running, oldest_age_s=_age(now, oldest_ts)),
            refused_topics=[
                RefusedTopic(
                    topic=each.event_topic,
                    next_offset=each.next_offset,
                    reason=each.reason,
                    since_ts=each.since_ts,
                    tried_ts=each.tried_ts,
                )
                for each in parked
            ],
        )

    async def dead_letters(
        self, *, group: str | None = None, after: UUID | None = None, limit: int = 50
    ) -> list[DeadLetter]:
        """Return dead letters that were not replayed, oldest first. `after`: the last of the page before."""
        table = dead_letter_queue
        statement = (
            select(table).where(table.c.replayed_ts.is_(None)).order_by(table.c.dead_letter_id).limit(limit)
        )
        if group is not None:
            statement = statement.where(table.c.group_id == group)
        if after is not None:
            statement = statement.where(table.c.dead_letter_id > after)
        return [DeadLetter(**row._mapping) for row in await self._database.fetch(Pool.API, statement)]

    # --- removing ---------------------------------------------------------------------------------

    async def delete_group(self, group: str, author: Author) -> None:
        """Delete a group that is not running. Its dead letters stay. Raises NotFoundError, ConflictError."""
        found = [each for each in await self.groups(limit=MAX_GROUPS) if each.group == group]
        if not found:
            raise NotFoundError("consumer group", group)
        if found[0].is_running:
            raise ConflictError.at("/group", "running", f'a consumer of "{group}" runs; stop it first')

        async def work(connection: AsyncConnection) -> None:
            for table in (consumer_offsets, consumer_claim_t, consumer_group_t):
                await connection.execute(delete(table).where(table.c.group_id == group))
            before = {"next_offset": found[0].next_offset, "lag": found[0].lag}
            await self._audit(connection, author, Action.EVENT_GROUP_DELETED, group, before)

        await self._database.write(Pool.API, work)

    async def delete_relay(self, name: str, author: Author) -> None:
        """Delete a relay that is not running, and its refused topics. Raises NotFoundError, ConflictError."""
        found = [each for each in await self.relays() if each.name == name]
        if not found:
            raise NotFoundError("relay", name)
        if found[0].is_running:
            raise ConflictError.at("/relay", "running", f'the relay "{name}" runs; stop it first')

        async def work(connection: AsyncConnection) -> None:
            for table in (relay_parked_t, relay_t):
                await connection.execute(delete(table).where(table.c.relay_name == name))
            before = {"next_offset": found[0].next_offset, "lag": found[0].lag}
            await self._audit(connection, author, Action.EVENT_RELAY_DELETED, name, before)

        await self._database.write(Pool.API, work)

    async def delete_refused_topic(self, name: str, topic: str, author: Author) -> None:
        """Discard the unsent events of a topic that a relay's broker refuses. Raises NotFoundError."""
        table = relay_parked_t

        async def work(connection: AsyncConnection) -> None:
            gone = await connection.execute(
                delete(table)
                .where(table.c.relay_name == name, table.c.event_topic == topic)
                .returning(table.c.next_offset)
            )
            offset = gone.scalar_one_or_none()
            if offset is None:
                raise NotFoundError("refused topic", topic)
            before = {"topic": topic, "next_offset": offset}
            await self._audit(connection, author, Action.EVENT_RELAY_TOPIC_DELETED, name, before)

        await self._database.write(Pool.API, work)

    async def replay(self, dead_letter_id: UUID, author: Author) -> DeadLetter:
        """Request that a process of its group handles a dead letter again. Raises NotFoundError."""
        letter = await self._letter(dead_letter_id)

        async def work(connection: AsyncConnection) -> None:
            await self._letters.request_replay(connection, dead_letter_id)
            await self._audit(connection, author, Action.DEAD_LETTER_REPLAYED, dead_letter_id, None)

        await self._database.write(Pool.API, work)
        return letter

    async def delete_dead_letter(self, dead_letter_id: UUID, author: Author) -> None:
        """Delete a dead letter for good. Raises NotFoundError."""
        letter = await self._letter(dead_letter_id)

        async def work(connection: AsyncConnection) -> None:
            mine = dead_letter_queue.c.dead_letter_id == dead_letter_id
            await connection.execute(delete(dead_letter_queue).where(mine))
            before = {
                "group": letter.group_id,
                "offset": letter.c_offset,
                "events": [each["id"] for each in letter.events],
                "error": letter.error,
            }
            await self._audit(connection, author, Action.DEAD_LETTER_DELETED, dead_letter_id, before)

        await self._database.write(Pool.API, work)

    async def _letter(self, dead_letter_id: UUID) -> DeadLetter:
        table = dead_letter_queue
        statement = select(table).where(
            table.c.dead_letter_id == dead_letter_id, table.c.replayed_ts.is_(None)
        )
        row = (await self._database.fetch(Pool.API, statement)).one_or_none()
        if row is None:
            raise NotFoundError("dead letter", dead_letter_id)
        return DeadLetter(**row._mapping)

    async def _audit(
        self,
        connection: AsyncConnection,
        author: Author,
        action: Action,
        resource_id: object,
        before: dict[str, Any] | None,
    ) -> None:
        await record_audit(
            connection,
            self._database.dialect,
            author,
            action,
            resource_id,
            host_id=DEFAULT_HOST_ID,
            before=before,
        )

    async def _now_and_end(self, connection: AsyncConnection) -> tuple[datetime, int]:
        now: datetime = (await connection.execute(select(self._database.dialect.now()))).scalar_one()
        return now, (await connection.execute(log_end())).scalar_one()

    async def _oldest(
        self, connection: AsyncConnection, next_offset: int | None, end: int
    ) -> datetime | None:
        """Return when the oldest unread event was created; None: there is none, or no offset is known."""
        if next_offset is None or next_offset >= end:
            return None
        table = outbox_message_t
        statement = select(table.c.id).where(table.c.c_offset >= next_offset).order_by(table.c.c_offset)
        found: UUID | None = (await connection.execute(statement.limit(1))).scalar_one_or_none()
        return None if found is None else instant_of_id(found)


def _age(now: datetime, instant: datetime | None) -> float | None:
    return None if instant is None else (now - instant).total_seconds()
