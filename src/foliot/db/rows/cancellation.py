"""Cancel open executions. Waiting ones end at once; running ones stop when their worker next renews.

An execution that an agent has taken over also ends at once: no worker renews it, so nobody would learn of the
request. The caller publishes which executions ended, after the commit.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, and_, not_, null, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.rows.attempt_rows import EndedAttempt, record_attempts
from foliot.db.rows.last_runs import LastRun, record_status
from foliot.db.rows.row_locks import lock_executions
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.model.event import CancelledExecution
from foliot.model.execution import CLAIMABLE, Status, TriggeredBy


async def request_cancel(
    connection: AsyncConnection,
    dialect: Dialect,
    schedule_ids: Sequence[UUID],
    *,
    reason: str,
    keep: Sequence[UUID] = (),
    with_running: bool = True,
    with_held_backfill: bool = False,
) -> list[CancelledExecution]:
    """Cancel the open executions of these schedules, except `keep`; return those that ended at once.

    Held executions of a backfill stay unless `with_held_backfill` is set: a run that replaces the current one
    must not discard past runs that somebody requested.
    """
    wanted = dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
    kept = dialect.rows("kept", {"execution_id": Uuid()}, [(each,) for each in keep])
    conditions: list[Any] = [
        execution_t.c.schedule_id.in_(select(wanted.c.schedule_id)),
        text(IS_OPEN),
        execution_t.c.execution_id.not_in(select(kept.c.execution_id)),
    ]
    if not with_running:
        conditions.append(execution_t.c.status.in_([each.value for each in CLAIMABLE]))
    if not with_held_backfill:
        is_of_backfill = execution_t.c.triggered_by == TriggeredBy.BACKFILL.value
        conditions.append(not_(and_(is_of_backfill, execution_t.c.due_by_ts.is_(None))))
    rows = await lock_executions(connection, dialect, *conditions)
    return await cancel_locked(connection, dialect, rows, reason=reason)


async def cancel_locked(
    connection: AsyncConnection,
    dialect: Dialect,
    rows: Sequence[Any],
    *,
    reason: str,
    error: str | None = None,
) -> list[CancelledExecution]:
    """Cancel open executions whose rows this transaction has locked; return those that ended at once."""
    ending = [row for row in rows if Status(row.status) in CLAIMABLE or _is_with_agent(row)]
    ended_ids = {row.execution_id for row in ending}
    await _end(connection, dialect, ending, reason, error)
    stopping = [row.execution_id for row in rows if row.execution_id not in ended_ids]
    if stopping:
        await connection.execute(
            update(execution_t)
            .where(execution_t.c.execution_id.in_(_ids(dialect, stopping)))
            .values(cancel_requested=True, reason=reason)
        )
    return [_cancelled(row, error or reason) for row in ending]


async def _end(
    connection: AsyncConnection, dialect: Dialect, rows: Sequence[Any], reason: str, error: str | None
) -> None:
    if not rows:
        return
    values: dict[str, Any] = {
        "cancel_requested": True,
        "status": Status.CANCELLED.value,
        "reason": reason,
        "ended_ts": dialect.now(),
        "lease_until": null(),
    }
    if error is not None:
        values["error"] = error
    await connection.execute(
        update(execution_t)
        .where(execution_t.c.execution_id.in_(_ids(dialect, [row.execution_id for row in rows])))
        .values(values)
    )
    with_agents = [_of_agent(row, error or reason) for row in rows if _is_with_agent(row)]
    await record_attempts(connection, dialect, with_agents)
    # Not the last run of a schedule: executions that never started, or that a worker handed back.
    has_run = [row for row in rows if row.started_ts is not None and row.status != Status.PENDING.value]
    await record_status(
        connection,
        dialect,
        [LastRun(row.schedule_id, row.started_ts, Status.CANCELLED, row.execution_id) for row in has_run],
    )


def _cancelled(row: Any, reason: str) -> CancelledExecution:
    is_with_agent = _is_with_agent(row)
    return CancelledExecution(
        row.execution_id,
        row.schedule_id,
        row.attempt,
        reason,
        row.store_now,
        row.schedule_name,
        row.queue,
        row.worker_id if is_with_agent else None,
        row.started_ts if is_with_agent else None,
        row.trace_context,
    )


def _of_agent(row: Any, error: str) -> EndedAttempt:
    """Build the attempt that an agent was running. A worker records its own attempts when it settles them."""
    duration_s = (row.store_now - row.started_ts).total_seconds()
    return EndedAttempt(
        row.execution_id, row.attempt, Status.CANCELLED, row.worker_id, row.started_ts, error, duration_s
    )


def _is_with_agent(row: Any) -> bool:
    return bool(row.is_remote and row.status == Status.RUNNING.value)


def _ids(dialect: Dialect, execution_ids: Sequence[UUID]) -> Any:
    wanted = dialect.rows("stopped", {"execution_id": Uuid()}, [(each,) for each in execution_ids])
    return select(wanted.c.execution_id)
