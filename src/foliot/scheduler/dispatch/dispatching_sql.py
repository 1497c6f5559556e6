"""Find waiting executions, for the dispatcher that publishes messages for them.

`due_by_ts` is the ready time plus a duration that depends on the priority, and `idx_execution_claimable` is
ordered by it. So for each priority and queue, a span of ready times is one range of the index, and only the
requested rows are read.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, String, and_, or_, select, text

from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.executions import IS_CLAIMABLE, execution_t, queue_t
from foliot.db.types import Instant
from foliot.model.execution import TriggeredBy
from foliot.model.policy import Priority, priority_from

AS_FIRED_S = 0.1
"""An execution that was ready within this many seconds of its creation was fired ready, not held first."""


class ClaimableExecution(NamedTuple):
    """An execution that may be claimed, and the queue it waits in."""

    execution_id: UUID
    attempt: int
    """Number of claims so far. An execution that waits again after a claim counts as new."""
    queue: str
    priority: Priority
    ready_ts: datetime
    trace_context: str | None = None


class Dispatching(Statements):
    async def waiting(
        self,
        priorities: Sequence[Priority],
        *,
        since: datetime,
        until: datetime,
        after: ClaimableExecution | None = None,
        limit: int,
        with_fired: bool,
    ) -> list[ClaimableExecution]:
        """Return executions that became ready in (since, until] and are unclaimed, in queues not paused.

        In order of readiness, only those behind `after`. `with_fired` False: leave out executions that are
        unchanged since they were fired; the scheduler that fired them dispatches them.
        """
        table = execution_t
        if after is not None:
            since = max(since, after.ready_ts - timedelta(microseconds=1))
        spans = self._dialect.rows(
            "spans",
            {"span_priority": String(), "from_ts": Instant(), "to_ts": Instant()},
            [(str(each), since + _sla(each), until + _sla(each)) for each in priorities],
        )
        first = (
            select(
                table.c.execution_id,
                table.c.attempt,
                table.c.queue,
                table.c.priority,
                table.c.ready_ts,
                table.c.trace_context,
            )
            .where(
                table.c.host_id == queue_t.c.host_id,
                table.c.queue == queue_t.c.queue,
                table.c.due_by_ts > spans.c.from_ts,
                table.c.due_by_ts <= spans.c.to_ts,
                table.c.priority == spans.c.span_priority,
                text(IS_CLAIMABLE),
                table.c.ready_ts <= self._dialect.now(),
                *self._conditions(after, with_fired=with_fired),
            )
            .order_by(table.c.due_by_ts, table.c.execution_id)
            .limit(limit)
            .correlate(queue_t, spans)
        )
        found = self._dialect.of_each(queue_t.join(spans, ~queue_t.c.paused), first, table.c.execution_id)
        columns = found.selected_columns
        statement = found.order_by(columns["ready_ts"], columns["execution_id"]).limit(limit)
        rows: Sequence[Any] = (await self._database.fetch(Pool.FIRING, statement)).all()
        return [
            ClaimableExecution(row[0], row[1], row[2], priority_from(row[3]), row[4], row[5]) for row in rows
        ]

    def _conditions(self, after: ClaimableExecution | None, *, with_fired: bool) -> list[ColumnElement[bool]]:
        table, found = execution_t, list[ColumnElement[bool]]()
        if after is not None:
            is_behind = and_(table.c.ready_ts == after.ready_ts, table.c.execution_id > after.execution_id)
            found.append(or_(table.c.ready_ts > after.ready_ts, is_behind))
        if not with_fired:
            held_until = self._dialect.plus(table.c.created_ts, AS_FIRED_S)
            was_fired = table.c.triggered_by == TriggeredBy.SCHEDULER.value
            found.append(or_(~was_fired, table.c.attempt > 0, table.c.ready_ts > held_until))
        return found


def _sla(priority: Priority) -> timedelta:
    return timedelta(seconds=priority.sla_s)
