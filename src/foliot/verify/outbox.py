"""Check the outbox: offsets without gaps, each event once, in commit order."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.events import event_store_t, log_counter, outbox_message_t, pending_event_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_version_t
from foliot.model.ids import first_id_at
from foliot.verify.finding import Finding, FindingKind, VerifiedSpan
from foliot.verify.states import MAX_ROWS

_M = outbox_message_t.c


class _Log(NamedTuple):
    """The part of the outbox that is checked."""

    first: int
    last: int
    next_offset: int
    messages: int


async def check_outbox(connection: AsyncConnection, span: VerifiedSpan) -> AsyncIterator[Finding]:
    log = await _log_of(connection, span)
    if log is not None:
        async for finding in _check_offsets(connection, log):
            yield finding
        async for finding in _check_order(connection, log):
            yield finding
        async for finding in _check_transactions(connection, log):
            yield finding
    async for finding in _check_events(connection, span):
        yield finding


async def count_messages(connection: AsyncConnection, span: VerifiedSpan) -> int:
    log = await _log_of(connection, span)
    return 0 if log is None else log.messages


async def _log_of(connection: AsyncConnection, span: VerifiedSpan) -> _Log | None:
    # Ids and offsets both grow, but not in the same order. So take the smallest offset, and all behind it.
    begin = select(func.min(_M.c_offset)).where(_M.id >= first_id_at(span.first)).scalar_subquery()
    following = select(func.max(log_counter.c.next_offset)).scalar_subquery()
    statement = select(func.min(_M.c_offset), func.max(_M.c_offset), following, func.count()).where(
        _M.c_offset >= begin
    )
    row = (await connection.execute(statement)).one()
    return None if row[0] is None else _Log(*row)


async def _check_offsets(connection: AsyncConnection, log: _Log) -> AsyncIterator[Finding]:
    before = func.lag(_M.c_offset).over(order_by=_M.c_offset)
    steps = select(_M.c_offset, before.label("before")).where(_M.c_offset >= log.first).subquery()
    holes = select(steps.c.before, steps.c.c_offset).where(steps.c.c_offset > steps.c.before + 1)
    for low, high in await connection.execute(holes.limit(MAX_ROWS)):
        wrong = f"no message has offset {low + 1}" + (f" up to {high - 1}" if high - low > 2 else "")
        yield Finding(FindingKind.OUTBOX_GAP, wrong, "offsets without gaps", count=high - low - 1)
    if log.last + 1 < log.next_offset:
        missing = log.next_offset - log.last - 1
        wrong = f"the last message has offset {log.last}, the counter stands at {log.next_offset}"
        yield Finding(FindingKind.OUTBOX_GAP, wrong, "a message for every offset given out", count=missing)
    if log.last >= log.next_offset:
        wrong = f"a message has offset {log.last}, the counter stands at {log.next_offset}"
        yield Finding(FindingKind.OUTBOX_ORDER, wrong, "offsets below the counter")


async def _check_order(connection: AsyncConnection, log: _Log) -> AsyncIterator[Finding]:
    """Check each schedule's event numbers. They are assigned under a lock, so they grow with the offsets."""
    before = func.lag(_M.aggregate_version).over(partition_by=_M.aggregate_id, order_by=_M.c_offset)
    steps = (
        select(_M.c_offset, _M.aggregate_id, _M.aggregate_version, _M.event_ts, before.label("before"))
        .where(_M.c_offset >= log.first)
        .subquery()
    )
    wrong_steps = select(steps).where(steps.c.aggregate_version <= steps.c.before)
    for row in await connection.execute(wrong_steps.limit(MAX_ROWS)):
        is_double = row.aggregate_version == row.before
        kind = FindingKind.OUTBOX_DOUBLE if is_double else FindingKind.OUTBOX_ORDER
        wrong = f"offset {row.c_offset}: event {row.aggregate_version} of {row.aggregate_id} comes " + (
            "again" if is_double else f"after event {row.before}"
        )
        yield Finding(kind, wrong, f"event {row.before + 1} or a later one", row.event_ts)


async def _check_transactions(connection: AsyncConnection, log: _Log) -> AsyncIterator[Finding]:
    """Check that messages of a transaction are consecutive. Missing ones are found as gaps in the offsets."""
    place = _M.c_offset - _M.transaction_ordinal
    statement = (
        select(_M.transaction_id, func.min(_M.c_offset), func.count(), func.max(_M.transaction_count))
        .where(_M.c_offset >= log.first)
        .group_by(_M.transaction_id)
        .having(or_(func.min(place) != func.max(place), func.count() > func.max(_M.transaction_count)))
    )
    for identity, offset, count, expected in await connection.execute(statement.limit(MAX_ROWS)):
        is_double = count > expected
        kind = FindingKind.OUTBOX_DOUBLE if is_double else FindingKind.OUTBOX_ORDER
        wrong = f"transaction {identity} from offset {offset} on: " + (
            f"{count} messages of {expected}" if is_double else "its messages are not in their order"
        )
        yield Finding(kind, wrong, f"{expected} messages, one after the other")


async def _check_events(connection: AsyncConnection, span: VerifiedSpan) -> AsyncIterator[Finding]:
    since = first_id_at(span.first)
    stored, execution = event_store_t.c, execution_t.c
    unsent = (
        select(stored.id, stored.event_ts)
        .outerjoin(outbox_message_t, _M.id == stored.id)
        .where(stored.id >= since, _M.id.is_(None))
    )
    unstored = (
        select(_M.id, _M.event_ts)
        .outerjoin(event_store_t, stored.id == _M.id)
        .where(_M.id >= since, stored.id.is_(None))
    )
    unfired = (
        select(stored.id, stored.event_ts)
        .outerjoin(execution_t, execution.execution_id == stored.id)
        .where(stored.id >= since, execution.execution_id.is_(None))
    )
    version = schedule_version_t.c
    unsaid = (
        select(execution.execution_id, execution.fire_ts)
        .join(
            schedule_version_t,
            and_(
                version.schedule_id == execution.schedule_id,
                version.aggregate_version == execution.aggregate_version,
                version.document["target"]["kind"].as_string() == "event",
            ),
        )
        .outerjoin(event_store_t, stored.id == execution.execution_id)
        .outerjoin(pending_event_t, pending_event_t.c.id == execution.execution_id)
        .where(
            execution.execution_id >= since,
            execution.created_ts.between(span.first, span.last),
            execution.status == "success",
            stored.id.is_(None),
            pending_event_t.c.id.is_(None),
        )
    )
    checks: tuple[tuple[Select[Any], FindingKind, str, str], ...] = (
        (unsent, FindingKind.OUTBOX_GAP, "the event store has it, the outbox has no message", "both"),
        (
            unstored,
            FindingKind.OUTBOX_DOUBLE,
            "the outbox has a message that the event store has not",
            "both",
        ),
        (
            unfired,
            FindingKind.OUTBOX_DOUBLE,
            "an event that no execution has fired",
            "an execution with its id",
        ),
        (unsaid, FindingKind.OUTBOX_GAP, "fired, and no event was written", "an event with its id"),
    )
    for statement, kind, wrong, right in checks:
        for identity, at in await connection.execute(statement.limit(MAX_ROWS)):
            yield Finding(kind, f"event {identity}: {wrong}", right, at)
