"""Rows of the ledger, `execution_t`: inserting them, and counting open executions.

Everything that inserts (firing, a change of the schedule, a manual trigger) locks the schedule's row in one
statement and counts in the next, so that overlap is exact.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    Insert,
    Select,
    String,
    Uuid,
    bindparam,
    case,
    func,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.columns import BatchColumns, Shape
from foliot.db.dialect import Columns, Dialect
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.db.types import Instant
from foliot.model.event import SkippedExecution
from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.planning.fire import Due, FireDecision
from foliot.planning.overlap import OpenCounts, OverlapDecision


class NewExecution(NamedTuple):
    """A row about to be inserted."""

    execution_id: UUID
    due: Due
    decision: FireDecision
    admission: OverlapDecision
    reason: SkipReason | None
    """Why it is skipped, by policy or by overlap. None: it fires."""


def skipped_by(row: NewExecution, reason: SkipReason, schedule_name: str | None = None) -> SkippedExecution:
    """Return the event for a row that does not fire."""
    decision = row.decision
    return SkippedExecution(
        row.execution_id,
        row.due.schedule_id,
        decision.fire_ts,
        reason,
        decision.missed_count,
        schedule_name,
    )


async def count_open(
    connection: AsyncConnection, dialect: Dialect, schedule_ids: Sequence[UUID]
) -> dict[UUID, OpenCounts]:
    """Count open executions per schedule. Exact while the schedules' rows are locked.

    Schedules without open executions are left out.
    """
    if not schedule_ids:
        return {}
    arguments = dialect.arguments("wanted", _WANTED_COLUMNS, [schedule_ids])
    result = await connection.execute(_select_open(dialect), arguments)
    return {row.schedule_id: OpenCounts(row.open_count, row.held_count) for row in result}


_WANTED_COLUMNS: Columns = {"schedule_id": Uuid()}
_OPEN_COUNT = func.count().label("open_count")
# Of all open executions, only held ones have no `due_by_ts`.
_HELD_COUNT = (func.count() - func.count(execution_t.c.due_by_ts)).label("held_count")


@lru_cache(maxsize=64)
def _select_open(dialect: Dialect) -> Select[Any]:
    wanted = dialect.table("wanted", _WANTED_COLUMNS)
    return (
        select(execution_t.c.schedule_id, _OPEN_COUNT, _HELD_COUNT)
        .join(wanted, wanted.c.schedule_id == execution_t.c.schedule_id)
        .where(text(IS_OPEN))
        .group_by(execution_t.c.schedule_id)
    )


@lru_cache(maxsize=64)
def count_open_now(dialect: Dialect) -> Select[Any]:
    """Select the counts of open and held executions of one schedule, and the store's time."""
    wanted = execution_t.c.schedule_id == bindparam("wanted_id", type_=Uuid())
    counted = select(_OPEN_COUNT, _HELD_COUNT).where(wanted, text(IS_OPEN)).subquery("counted")
    return select(counted.c.open_count, counted.c.held_count, dialect.now().label("store_now"))


_NEW_COLUMNS: Columns = {
    "execution_id": Uuid(),
    "schedule_id": Uuid(),
    "host_id": Uuid(),
    "aggregate_version": BigInteger(),
    "fire_ts": Instant(),
    "missed_count": BigInteger(),
    "missed_from_ts": Instant(),
    "status": String(),
    "reason": String(),
    "queue": String(),
    "priority": String(),
    "is_ready": Boolean(),
    "sla_s": Float(),
}
_NEW = BatchColumns("new", _NEW_COLUMNS, by=("execution_id", "schedule_id"))


async def insert_executions(
    connection: AsyncConnection, dialect: Dialect, rows: Sequence[NewExecution], instance_id: str | None
) -> Sequence[NewExecution]:
    """Insert scheduled executions. Existing rows stay unchanged. Return those inserted."""
    if not rows:
        return rows
    batch = _NEW.lay_out(dialect, [_values_of(row) for row in rows])
    result = await connection.execute(
        _insert(dialect, batch.shape), {**batch.arguments, "instance_id": instance_id}
    )
    if result.rowcount == len(rows):
        return rows
    ids = dialect.rows("wanted", {"execution_id": Uuid()}, [(row.execution_id,) for row in rows])
    found = await connection.execute(
        select(execution_t.c.execution_id).join(ids, ids.c.execution_id == execution_t.c.execution_id)
    )
    written = set(found.scalars())
    return [row for row in rows if row.execution_id in written]


async def insert_event_executions(
    connection: AsyncConnection, dialect: Dialect, rows: Sequence[NewExecution], instance_id: str | None
) -> set[UUID]:
    """Insert executions of event schedules, which end when they fire. Return the ids of the new rows."""
    if not rows:
        return set()
    batch = _NEW.lay_out(dialect, [_values_of(row) for row in rows])
    statement = _insert(dialect, batch.shape, are_events=True).returning(execution_t.c.execution_id)
    result = await connection.execute(statement, {**batch.arguments, "instance_id": instance_id})
    return set(result.scalars())


@lru_cache(maxsize=256)
def _insert(dialect: Dialect, shape: Shape, *, are_events: bool = False) -> Insert:
    table, new = _NEW.table(dialect, shape)
    now = dialect.now()
    has_fired = new["status"] == Status.SUCCESS.value
    ended = (Status.SKIPPED.value, Status.SUCCESS.value) if are_events else (Status.SKIPPED.value,)
    names = [name for name in _NEW_COLUMNS if name not in ("is_ready", "sla_s")]
    source = (
        select(
            # The start comes before the end, because the clock is read for each.
            *([case((has_fired, now)), case((has_fired, 0.0)), case((has_fired, 1), else_=0)] * are_events),
            *[new[name] for name in names],
            case((new["is_ready"], now)),
            case((new["is_ready"], dialect.plus(now, new["sla_s"]))),
            case((new["status"].in_(ended), now)),
            now,
            literal(TriggeredBy.SCHEDULER.value),
            bindparam("instance_id", type_=String()),
        )
        .select_from(table)
        .where(true())
    )
    names = ["started_ts", "duration_seconds", "attempt"] * are_events + names
    names += ["ready_ts", "due_by_ts", "ended_ts", "created_ts", "triggered_by", "scheduler_instance_id"]
    return (
        dialect.insert(execution_t)
        .execution_options(preserve_rowcount=True)
        .from_select(names, source)
        .on_conflict_do_nothing(
            index_elements=[execution_t.c.schedule_id, execution_t.c.fire_ts],
            index_where=text("triggered_by = 'scheduler'"),
        )
    )


_FIRED = {False: "pending", True: "success"}


def _values_of(row: NewExecution) -> tuple[Any, ...]:
    due, decision, reason = row.due, row.decision, row.reason
    definition = due.definition
    return (
        row.execution_id,
        due.schedule_id,
        due.host_id,
        due.aggregate_version,
        decision.fire_ts,
        decision.missed_count,
        decision.missed_from_ts,
        _FIRED[definition.is_event] if reason is None else "skipped",
        reason,
        definition.queue,
        definition.priority,
        reason is None and row.admission is OverlapDecision.RUN,
        definition.priority.sla_s,
    )
