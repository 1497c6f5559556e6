"""What has changed since a last look: read by those who want to know, and paid for by nobody else.

Firing, claiming and settling write nothing for it. New versions, executions and entries of the audit are
found by the time in their keys, open executions by their ids. A key is made before its transaction commits,
so every look goes back by OVERLAP from the one before it, and leaves out what that one has seen.

An execution that is new, but has an older id, is found through the audit: one that was tried again by hand,
or triggered under an id that was given out before.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Uuid, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.ids import first_id_at
from foliot.store.audit import Action
from foliot.store.database import Database
from foliot.store.dialect import Pool
from foliot.store.schema import (
    IS_OPEN,
    audit_t,
    execution_t,
    schedule_t,
    schedule_version_t,
    scheduler_lock_t,
)

OVERLAP = timedelta(seconds=10)
"""How late a transaction may commit, after it made its keys, and still be seen."""
MAX_OPEN = 2_000
"""How many open executions, and how many new ones, a look reads."""
MAX_RECENT_EXECUTIONS = 20_000
MAX_RECENT_CHANGES = 2_000
"""Of all that is younger than a mark, seen before or not: executions; versions, and entries of the audit."""
PROGRESS_LETTERS = 200
"""Where the text of a progress is cut: what is looked at is kept in memory."""


class ScheduleChange(NamedTuple):
    """A version of a schedule that was made."""

    host_id: UUID
    schedule_id: UUID
    name: str
    change: str
    aggregate_version: int


class ExecutionStanding(NamedTuple):
    """How an execution stands."""

    host_id: UUID
    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    status: str
    attempt: int
    progress: dict[str, Any] | None
    fire_ts: datetime
    started_ts: datetime | None
    ended_ts: datetime | None
    duration_seconds: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a look ended: all that is older is known, and of what is younger, what was seen."""

    since: datetime
    seen: frozenset[Hashable] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    mark: Mark
    """Where to look on from."""
    schedules: Sequence[ScheduleChange]
    """Versions that were not seen before, oldest first."""
    executions: Sequence[ExecutionStanding]
    """Those that were asked for, and those that were not seen before, oldest first."""
    is_complete: bool = True
    """False: there is more than a look reads."""


class ChangeFeed:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    async def begin(self) -> Look:
        """All that is open now, and where to look on from; what is there already is not told as a change."""
        statement = select(execution_t.c.execution_id).where(text(IS_OPEN)).limit(MAX_OPEN + 1)
        async with self._database.read(Pool.API) as connection:
            since = await self._since(connection)
            recent = await _recent(connection, Mark(since))
            found = (await connection.execute(statement)).scalars().all()
            executions = await self._standing(connection, found[:MAX_OPEN])
        return Look(Mark(since, recent.seen), (), executions, len(found) <= MAX_OPEN)

    async def look(self, mark: Mark, followed: Collection[UUID]) -> Look:
        """What was not seen up to the mark, and how the followed executions stand now."""
        async with self._database.read(Pool.API) as connection:
            since = await self._since(connection)
            recent = await _recent(connection, mark)
            wanted = {*followed, *recent.executions[:MAX_OPEN], *recent.named}
            executions = await self._standing(connection, list(wanted))
        is_complete = recent.is_complete and len(recent.executions) <= MAX_OPEN
        return Look(Mark(since, recent.seen), recent.schedules, executions, is_complete)

    async def leaders(self) -> tuple[str, ...]:
        """The instances that lead, each once, in the order of their shards."""
        table = scheduler_lock_t
        statement = select(table.c.instance_id).where(table.c.instance_id != "").order_by(table.c.lock_id)
        async with self._database.read(Pool.API) as connection:
            return tuple(dict.fromkeys((await connection.execute(statement)).scalars()))

    async def _since(self, connection: AsyncConnection) -> datetime:
        # Before anything else is read: what commits meanwhile is younger.
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        return now - OVERLAP

    async def _standing(
        self, connection: AsyncConnection, execution_ids: Sequence[UUID]
    ) -> list[ExecutionStanding]:
        if not execution_ids:
            return []
        wanted = self._dialect.rows("wanted", {"execution_id": Uuid()}, [(each,) for each in execution_ids])
        table = execution_t
        statement = (
            select(*((schedule_t if name == "schedule_name" else table).c[name] for name in _STANDING))
            .select_from(
                wanted.join(table, table.c.execution_id == wanted.c.execution_id).outerjoin(
                    schedule_t, schedule_t.c.schedule_id == table.c.schedule_id
                )
            )
            .order_by(table.c.execution_id)
        )
        return [_shortened(ExecutionStanding._make(row)) for row in await connection.execute(statement)]


_STANDING = ExecutionStanding._fields


def _shortened(standing: ExecutionStanding) -> ExecutionStanding:
    progress = standing.progress
    if progress is None or len(progress.get("text") or "") <= PROGRESS_LETTERS:
        return standing
    return standing._replace(progress={**progress, "text": progress["text"][:PROGRESS_LETTERS]})


# --- what is younger than a mark -------------------------------------------------------------------


class _Recent(NamedTuple):
    seen: frozenset[Hashable]
    schedules: list[ScheduleChange]
    executions: list[UUID]
    """Not seen before, latest first."""
    named: set[UUID]
    """Executions that entries of the audit name which were not seen before."""
    is_complete: bool


async def _recent(connection: AsyncConnection, mark: Mark) -> _Recent:
    versions = [ScheduleChange._make(row) for row in await connection.execute(_versions(mark))]
    ids = (await connection.execute(_executions(mark))).scalars().all()
    entries = (await connection.execute(_steered(mark))).all()
    keys = {(each.schedule_id, each.aggregate_version): each for each in reversed(versions)}
    named = {_execution_of(entry) for entry in entries if entry.audit_id not in mark.seen}
    # What the audit names is seen, though its own row may have come too late for this look.
    seen = frozenset([*keys, *ids, *(entry.audit_id for entry in entries), *named])
    return _Recent(
        seen,
        [version for key, version in keys.items() if key not in mark.seen],
        [each for each in ids if each not in mark.seen],
        named,
        len(ids) <= MAX_RECENT_EXECUTIONS and max(len(versions), len(entries)) <= MAX_RECENT_CHANGES,
    )


# Latest first: where there is more than is read, what is new comes before what was seen.


def _versions(mark: Mark) -> Any:
    table = schedule_version_t
    return (
        select(
            table.c.host_id,
            table.c.schedule_id,
            table.c.document["name"].as_string(),
            table.c.change,
            table.c.aggregate_version,
        )
        .where(table.c.created_ts >= mark.since)
        .order_by(table.c.created_ts.desc(), table.c.aggregate_version.desc())
        .limit(MAX_RECENT_CHANGES + 1)
    )


def _executions(mark: Mark) -> Any:
    key = execution_t.c.execution_id
    return (
        select(key)
        .where(key >= first_id_at(mark.since))
        .order_by(key.desc())
        .limit(MAX_RECENT_EXECUTIONS + 1)
    )


def _steered(mark: Mark) -> Any:
    table = audit_t
    actions = (Action.EXECUTION_RETRIED.value, Action.SCHEDULE_TRIGGERED.value)
    return (
        select(table.c.audit_id, table.c.resource_id, table.c.after["execution_id"].as_string().label("made"))
        .where(table.c.audit_id >= first_id_at(mark.since), table.c.action.in_(actions))
        .order_by(table.c.audit_id.desc())
        .limit(MAX_RECENT_CHANGES + 1)
    )


def _execution_of(entry: Any) -> UUID:
    """What was triggered stands beside the schedule; what was tried again is the thing itself."""
    return UUID(entry.made or entry.resource_id)
