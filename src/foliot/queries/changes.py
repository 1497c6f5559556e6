"""Poll for changes of schedules and executions since the last poll. Only pollers pay for it.

Firing, claiming and settling write nothing for it. New versions, executions and audit entries are found by
the time in their keys, open executions by their ids. A key is made before its transaction commits, so every
poll starts OVERLAP before the last one and leaves out what that one has seen.

The audit finds executions that are new but have an older id: those retried by hand, or triggered under an id
that was made earlier.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Uuid, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action
from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.access import audit_t
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.ids import first_id_at

OVERLAP = timedelta(seconds=10)
"""How long after making its keys a transaction may commit and still be seen."""
MAX_OPEN = 2_000
"""Maximum number of open executions that `begin` reads, and of new ones that `read_changes` reads."""
MAX_RECENT_EXECUTIONS = 20_000
"""Maximum number of executions younger than the mark that a poll reads, seen before or not."""
MAX_RECENT_CHANGES = 2_000
"""Maximum number of versions, and of audit entries, younger than the mark that a poll reads."""
PROGRESS_LETTERS = 200
"""Maximum length of a progress text. Longer ones are cut, since pollers keep them in memory."""


class ScheduleChange(NamedTuple):
    """A new version of a schedule."""

    host_id: UUID
    schedule_id: UUID
    name: str
    change: str
    aggregate_version: int


class ExecutionStanding(NamedTuple):
    """The current state of an execution."""

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
    """Cursor of a poll: everything before `since` is known, and of later changes those in `seen`."""

    since: datetime
    seen: frozenset[Hashable] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    mark: Mark
    """Where the next poll starts."""
    schedules: Sequence[ScheduleChange]
    """Versions that were not seen before, oldest first."""
    executions: Sequence[ExecutionStanding]
    """Executions that were asked for, and those that were not seen before, oldest first."""
    is_complete: bool = True
    """False: a limit was reached and some changes are missing."""


class ChangeFeed(Statements):
    async def begin(self) -> ChangeBatch:
        """Return all open executions and a first mark. Existing versions are not returned as changes."""
        statement = select(execution_t.c.execution_id).where(text(IS_OPEN)).limit(MAX_OPEN + 1)
        async with self._database.read(Pool.API) as connection:
            since = await self._since(connection)
            recent = await _recent(connection, Mark(since))
            found = (await connection.execute(statement)).scalars().all()
            executions = await self._standing(connection, found[:MAX_OPEN])
        return ChangeBatch(Mark(since, recent.seen), (), executions, len(found) <= MAX_OPEN)

    async def read_changes(self, mark: Mark, followed: Collection[UUID]) -> ChangeBatch:
        """Return changes that the mark has not seen, and the current state of the followed executions."""
        async with self._database.read(Pool.API) as connection:
            since = await self._since(connection)
            recent = await _recent(connection, mark)
            wanted = {*followed, *recent.executions[:MAX_OPEN], *recent.named}
            executions = await self._standing(connection, list(wanted))
        is_complete = recent.is_complete and len(recent.executions) <= MAX_OPEN
        return ChangeBatch(Mark(since, recent.seen), recent.schedules, executions, is_complete)

    async def leaders(self) -> tuple[str, ...]:
        """Return the ids of the leading instances, each once, in the order of their shards."""
        table = scheduler_lock_t
        statement = select(table.c.instance_id).where(table.c.instance_id != "").order_by(table.c.lock_id)
        return tuple(dict.fromkeys((await self._database.fetch(Pool.API, statement)).scalars()))

    async def _since(self, connection: AsyncConnection) -> datetime:
        # Read first: a change that commits during this poll is then younger than the mark.
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


# --- changes younger than a mark -------------------------------------------------------------------


class _Recent(NamedTuple):
    seen: frozenset[Hashable]
    schedules: list[ScheduleChange]
    executions: list[UUID]
    """Not seen before, latest first."""
    named: set[UUID]
    """Executions that audit entries name, of entries that were not seen before."""
    is_complete: bool


async def _recent(connection: AsyncConnection, mark: Mark) -> _Recent:
    versions = [ScheduleChange._make(row) for row in await connection.execute(_versions(mark))]
    ids = (await connection.execute(_executions(mark))).scalars().all()
    entries = (await connection.execute(_audited_changes(mark))).all()
    keys = {(each.schedule_id, each.aggregate_version): each for each in reversed(versions)}
    named = {_execution_of(entry) for entry in entries if entry.audit_id not in mark.seen}
    # Executions that the audit names count as seen, even if they committed after `ids` was read: this poll
    # returns them, so the next one must not return them as new.
    seen = frozenset([*keys, *ids, *(entry.audit_id for entry in entries), *named])
    return _Recent(
        seen,
        [version for key, version in keys.items() if key not in mark.seen],
        [each for each in ids if each not in mark.seen],
        named,
        len(ids) <= MAX_RECENT_EXECUTIONS and max(len(versions), len(entries)) <= MAX_RECENT_CHANGES,
    )


# Latest first: if the limit cuts rows off, it cuts those seen before rather than new ones.


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


def _audited_changes(mark: Mark) -> Any:
    table = audit_t
    actions = (Action.EXECUTION_RETRIED.value, Action.SCHEDULE_TRIGGERED.value)
    return (
        select(table.c.audit_id, table.c.resource_id, table.c.after["execution_id"].as_string().label("made"))
        .where(table.c.audit_id >= first_id_at(mark.since), table.c.action.in_(actions))
        .order_by(table.c.audit_id.desc())
        .limit(MAX_RECENT_CHANGES + 1)
    )


def _execution_of(entry: Any) -> UUID:
    """Return the execution of an audit entry. A retry has it as its resource, a trigger in `after`."""
    return UUID(entry.made or entry.resource_id)
