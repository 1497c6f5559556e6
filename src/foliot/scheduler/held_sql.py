"""Release held executions: find them without a lock, in bounded batches, then lock and release.

The scan steps from one schedule with held executions to the next in `idx_execution_held`. So its cost depends
on the number of schedules it visits, and it holds no lock. Only schedules where overlap allows more runs are
then locked and counted again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import (
    Float,
    Integer,
    Select,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.ledger import count_open
from foliot.db.rows.shard_rows import is_of
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import Status, TriggeredBy
from foliot.model.lease import Shard
from foliot.model.policy import Overlap, OverlapPolicy, priority_from

MAX_SORTED = 20_000
"""Max held executions that one transaction sorts, because SQLite's write lock is held meanwhile."""
_FIRST_ID = UUID(int=0)


class Scan(NamedTuple):
    schedule_ids: list[UUID]
    """Schedules with held executions that may run now."""
    position: UUID | None
    """Cursor to continue after. None: the scan reached the end."""


async def scan_held(
    connection: AsyncConnection, shard: Shard, *, after: UUID | None, limit: int, max_released: int
) -> Scan:
    """Scan the next `limit` schedules with held executions, for at most `max_released` releases."""
    arguments = {"after": after or _FIRST_ID, "most": limit}
    rows = (await connection.execute(_held_schedules(shard), arguments)).all()
    position = rows[-1].held_id if len(rows) == limit else None
    found: list[UUID] = []
    released = sorted_rows = 0
    last = after
    for row in rows:
        overlap = None if row.schedule_id is None else _overlap_of(row.policies)
        room = 0 if overlap is None else _room(overlap, row.ready_count, row.held_count)
        if room:
            if found and (released + room > max_released or sorted_rows + row.held_count > MAX_SORTED):
                return Scan(found, last)
            found.append(row.schedule_id)
            released += room
            sorted_rows += row.held_count
        last = row.held_id
    return Scan(found, position)


async def release_locked(
    connection: AsyncConnection, dialect: Dialect, schedule_ids: Sequence[UUID], *, limit: int
) -> int:
    """Let the oldest held executions of these schedules run as far as overlap allows. Return their number.

    Schedules that are locked by another transaction are skipped until the next scan.
    """
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    locked = await connection.execute(
        select(schedule_t.c.schedule_id, schedule_t.c.policies)
        .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
        .order_by(schedule_t.c.schedule_id)
        .with_for_update(skip_locked=True)
    )
    overlaps = {row.schedule_id: _overlap_of(row.policies) for row in locked}
    opened = await count_open(connection, dialect, list(overlaps))
    rooms = []
    for schedule_id, overlap in overlaps.items():
        counts = opened.get(schedule_id)
        if overlap is None or counts is None:
            continue
        room = min(_room(overlap, counts.total - counts.held, counts.held), limit)
        if room:
            rooms.append((schedule_id, room))
            limit -= room
    if not rooms:
        return 0
    rows = (await connection.execute(_oldest_held(dialect, rooms))).all()
    await _make_ready(connection, dialect, rows)
    return len(rows)


def _overlap_of(policies: Any) -> Overlap | None:
    """Read the overlap policy. None: a newer version wrote it, so its instances handle it."""
    try:
        return Overlap.model_validate(policies.get("overlap", {}), extra="ignore")
    except ValidationError:
        return None


def _room(overlap: Overlap, ready_count: int, held_count: int) -> int:
    """Return how many of the held executions may run now."""
    if overlap.policy is OverlapPolicy.ALLOW:
        return held_count
    return min(held_count, max(0, overlap.max_instances - ready_count))


def _held_schedules(shard: Shard) -> Select[Any]:
    first = _next_held().where(execution_t.c.schedule_id > bindparam("after", type_=Uuid()))
    held = select(first.scalar_subquery().label("schedule_id"), literal(1).label("number")).cte(
        "held", recursive=True
    )
    following = _next_held().where(execution_t.c.schedule_id > held.c.schedule_id).correlate(held)
    held = held.union_all(
        select(following.scalar_subquery(), held.c.number + 1).where(
            held.c.schedule_id.is_not(None), held.c.number < bindparam("most", type_=Integer())
        )
    )
    mine = execution_t.c.schedule_id == schedule_t.c.schedule_id
    ready_count = select(func.count(execution_t.c.due_by_ts)).where(mine, text(IS_OPEN))
    held_count = select(func.count(execution_t.c.execution_id)).where(mine, *_IS_HELD)
    return (
        select(
            held.c.schedule_id.label("held_id"),
            schedule_t.c.schedule_id,
            schedule_t.c.policies,
            ready_count.correlate(schedule_t).scalar_subquery().label("ready_count"),
            held_count.correlate(schedule_t).scalar_subquery().label("held_count"),
        )
        .select_from(
            held.outerjoin(schedule_t, and_(schedule_t.c.schedule_id == held.c.schedule_id, *is_of(shard)))
        )
        .where(held.c.schedule_id.is_not(None))
        .order_by(held.c.number)
    )


# Literal SQL text, so that the planner matches the partial index.
_IS_HELD = (execution_t.c.status == text("'pending'"), execution_t.c.due_by_ts.is_(None))


def _next_held() -> Select[Any]:
    return select(execution_t.c.schedule_id).where(*_IS_HELD).order_by(execution_t.c.schedule_id).limit(1)


def _oldest_held(dialect: Dialect, rooms: Sequence[tuple[UUID, int]]) -> Select[Any]:
    wanted = dialect.rows("wanted", {"schedule_id": Uuid(), "room": Integer()}, rooms)
    # A backfill must not delay the schedule's own runs, although these have later fire times.
    is_of_backfill = case((execution_t.c.triggered_by == TriggeredBy.BACKFILL.value, 1), else_=0)
    rank = func.row_number().over(
        partition_by=execution_t.c.schedule_id,
        order_by=(is_of_backfill, execution_t.c.fire_ts, execution_t.c.execution_id),
    )
    ranked = (
        select(execution_t.c.execution_id, execution_t.c.priority, wanted.c.room, rank.label("rank"))
        .join(wanted, wanted.c.schedule_id == execution_t.c.schedule_id)
        .where(*_IS_HELD)
        .subquery("ranked")
    )
    return select(ranked.c.execution_id, ranked.c.priority).where(ranked.c.rank <= ranked.c.room)


async def _make_ready(connection: AsyncConnection, dialect: Dialect, rows: Sequence[Any]) -> None:
    free = dialect.rows(
        "free",
        {"execution_id": Uuid(), "sla_s": Float()},
        [(row.execution_id, priority_from(row.priority).sla_s) for row in rows],
    )
    now = dialect.now()
    await connection.execute(
        update(execution_t)
        .where(
            execution_t.c.execution_id == free.c.execution_id,
            execution_t.c.status == Status.PENDING.value,
            execution_t.c.due_by_ts.is_(None),
        )
        .values(ready_ts=now, due_by_ts=dialect.plus(now, free.c.sla_s))
    )
