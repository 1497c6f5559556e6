"""Statements on `schedule_t` and `schedule_version_t`: definitions and their changes.

A pure function plans a change under the schedule's lock. One transaction writes all of it: the schedule's
row, the version that records it, and a skipped execution for a time that was due and can't fire any more. A
leader that still has the old version in memory is refused by the condition on `aggregate_version`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pydantic_core import to_jsonable_python
from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, audit_write
from foliot.db.combined_inserts import row_of_values, write_together
from foliot.db.dialect import Pool
from foliot.db.rows.cancellation import request_cancel
from foliot.db.rows.event_runs import say_events
from foliot.db.rows.execution_inserts import Room, lock_schedule, make_room, queue_write
from foliot.db.rows.execution_rows import (
    execution_as_written,
    execution_of,
    read_execution,
    requested_execution,
    select_executions,
)
from foliot.db.rows.ledger import NewExecution, insert_executions, skipped_by
from foliot.db.rows.schedule_rows import row_of, schedule_of
from foliot.db.rows.search_rows import keep_text, text_write
from foliot.db.statements import Statements, transaction
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.errors import NameTakenError, NotFoundError, StaleVersionError
from foliot.model.event import CancelledExecution, SkippedExecution
from foliot.model.execution import Execution, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.schedule import ChangeKind, Schedule, stored_document
from foliot.planning.change import Author, PlannedChange, due_of, without_next
from foliot.planning.overlap import OverlapDecision
from foliot.scheduler.pending_events_sql import pending_event_write, read_event_schedule


class Changed(NamedTuple):
    """A schedule after a change, and the executions that the change skipped or cancelled."""

    schedule: Schedule
    kind: ChangeKind | None = None
    """What was done. None: nothing, it was so already."""
    skipped: SkippedExecution | None = None
    """The fire time that was due already and does not fire any more. None: there was none."""
    cancelled: Sequence[CancelledExecution] = ()


class Triggered(NamedTuple):
    execution: Execution
    """The new execution. If it existed before, its current state."""
    schedule: Schedule
    is_new: bool = True
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that were replaced by this one and ended at once."""
    is_staged: bool = False
    """Whether its event waits for an offset (`scheduler/pending_events_sql.py`)."""


class Schedules(Statements):
    # --- changing ---------------------------------------------------------------------------------

    @transaction(Pool.API)
    async def create(
        self, connection: AsyncConnection, plan: Callable[[datetime], PlannedChange], author: Author
    ) -> Schedule:
        """Store the change that `plan` returns for the store's time. Raises NameTakenError."""
        change = plan(await self._now(connection))
        with _named(change.schedule):
            await self._record(connection, None, change, author)
        return change.schedule

    async def change(
        self,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], PlannedChange | None],
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        """Apply a planned change under the schedule's lock. Raises NotFoundError, StaleVersionError."""
        changed = await self.change_known(
            schedule_id, plan, author, host_id=host_id, expected_version=expected_version
        )
        return changed.schedule

    @transaction(Pool.API)
    async def change_known(
        self,
        connection: AsyncConnection,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], PlannedChange | None],
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Changed:
        """Apply a planned change; return the schedule and the executions it skipped or cancelled."""
        schedule = await lock_schedule(connection, schedule_id, host_id=host_id, to_change=True)
        if expected_version is not None and schedule.aggregate_version != expected_version:
            raise StaleVersionError(schedule_id, expected_version, schedule.aggregate_version)
        now = await self._now(connection)
        change = plan(schedule, now)
        if change is None:
            return Changed(schedule)
        change = await self._without_decided(connection, schedule, change, now)
        with _named(change.schedule):
            await self._replace(connection, change)
        skipped = await self._decide(connection, schedule, change)
        cancelled = await self._cancel_deleted(connection, change)
        await self._record(connection, schedule, change, author)
        return Changed(change.schedule, change.kind, skipped, cancelled)

    async def _replace(self, connection: AsyncConnection, change: PlannedChange) -> None:
        schedule = change.schedule
        values = row_of(schedule)
        for fixed in ("schedule_id", "host_id", "slot", "created_by", "created_ts", "run_count"):
            del values[fixed]
        result = await connection.execute(
            update(schedule_t)
            .where(
                schedule_t.c.schedule_id == schedule.schedule_id,
                schedule_t.c.aggregate_version == schedule.aggregate_version - 1,
            )
            .values(values)
        )
        assert result.rowcount == 1, "the row is locked, so its version can't have moved"

    async def _decide(
        self, connection: AsyncConnection, before: Schedule, change: PlannedChange
    ) -> SkippedExecution | None:
        decision = change.decision
        if decision is None:
            return None
        reason = decision.reason
        assert reason is not None, "what fires is decided by the leader"
        row = NewExecution(
            new_id(change.schedule.updated_ts), due_of(before), decision, OverlapDecision.RUN, reason
        )
        written = await insert_executions(connection, self._dialect, [row], None)
        return skipped_by(row, reason, change.schedule.spec.name) if written else None

    async def _without_decided(
        self, connection: AsyncConnection, before: Schedule, change: PlannedChange, now: datetime
    ) -> PlannedChange:
        """Clear the next time of a `once` that was moved back to a past time that is already decided.

        Other schedules need no change: firing leaves the decided time out and sets the next one.
        """
        if not change.schedule.spec.trigger.fires_once:
            return change
        fire_ts = change.schedule.next_fire_ts
        if fire_ts is None or fire_ts > now or fire_ts == before.next_fire_ts:
            return change
        decided = select(execution_t.c.execution_id).where(
            execution_t.c.schedule_id == before.schedule_id,
            execution_t.c.fire_ts == fire_ts,
            execution_t.c.triggered_by == TriggeredBy.SCHEDULER.value,
        )
        is_decided = (await connection.execute(decided)).first() is not None
        return without_next(change) if is_decided else change

    async def _cancel_deleted(
        self, connection: AsyncConnection, change: PlannedChange
    ) -> Sequence[CancelledExecution]:
        if change.kind is not ChangeKind.DELETED:
            return ()
        return await request_cancel(
            connection,
            self._dialect,
            [change.schedule.schedule_id],
            reason="deleted",
            with_running=False,
            with_held_backfill=True,
        )

    async def _record(
        self, connection: AsyncConnection, before: Schedule | None, change: PlannedChange, author: Author
    ) -> None:
        schedule = change.schedule
        if before is not None:
            await keep_text(connection, self._dialect, before, schedule)
        version = row_of_values(
            self._dialect,
            schedule_version_t,
            {
                "schedule_id": schedule.schedule_id,
                "aggregate_version": schedule.aggregate_version,
                "host_id": schedule.host_id,
                "change": change.kind.value,
                "document": stored_document(schedule.spec),
                "paused": schedule.paused,
                "paused_until_ts": schedule.paused_until_ts,
                "effective_ts": schedule.effective_ts,
                "author": author.name,
                "reason": author.reason,
                "created_ts": schedule.updated_ts,
            },
        )
        was, became = _differences(before, schedule)
        audit = audit_write(
            self._dialect,
            author,
            _ACTIONS[change.kind],
            schedule.schedule_id,
            host_id=schedule.host_id,
            now=schedule.updated_ts,
            before=was,
            after=became,
        )
        queue = queue_write(self._dialect, schedule.host_id, schedule.spec.queue)
        writes = [version, queue, audit]
        if before is None:
            # The schedule first, since its name may be taken. On SQLite these are separate statements, and in
            # a caller's transaction nothing else must have been written by then.
            writes = [
                row_of_values(self._dialect, schedule_t, row_of(schedule)),
                text_write(self._dialect, schedule),
                *writes,
            ]
        await write_together(connection, self._dialect, writes)

    # --- running now ------------------------------------------------------------------------------

    async def trigger(
        self,
        schedule_id: UUID,
        *,
        by: TriggeredBy,
        author: Author,
        args: Mapping[str, Any] | None = None,
        execution_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> UUID:
        """Run the schedule now, in addition to its fire times. Held, never skipped, if overlap forbids it.

        Return the execution's id. If an execution with `execution_id` exists already, nothing is done.
        """
        made = await self.trigger_known(
            schedule_id, by=by, author=author, args=args, execution_id=execution_id, host_id=host_id
        )
        return made.execution.execution_id

    @transaction(Pool.API)
    async def trigger_known(
        self,
        connection: AsyncConnection,
        schedule_id: UUID,
        *,
        by: TriggeredBy,
        author: Author,
        args: Mapping[str, Any] | None = None,
        execution_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> Triggered:
        """Trigger a schedule now. Return the execution and those that it replaced."""
        staged = self._database.is_joined and await read_event_schedule(
            connection, schedule_id, host_id=host_id
        )
        schedule = staged or await lock_schedule(connection, schedule_id, host_id=host_id)
        if execution_id is not None and await _exists(connection, execution_id):
            # A repeated request, from a caller that did not receive the first answer.
            return Triggered(await read_execution(connection, execution_id), schedule, is_new=False)
        is_event = schedule.spec.target.is_event
        is_ready, now, replaced = (
            Room(True, await self._now(connection))
            if is_event
            else await make_room(connection, self._dialect, schedule)
        )
        identity = execution_id or new_id(now)
        values = requested_execution(
            schedule, identity, now, by=by, user=author.name, now=now, is_ready=is_ready
        ) | {
            "args": None if args is None else dict(args),
            # The trace of an event is derived from its id, because the relay knows nothing else of it.
            "trace_context": None if is_event else author.trace_context,
        }
        execution = row_of_values(self._dialect, execution_t, values)
        audit = audit_write(
            self._dialect,
            author,
            Action.SCHEDULE_TRIGGERED,
            schedule_id,
            host_id=schedule.host_id,
            now=now,
            after={"execution_id": str(identity), "args": None if args is None else dict(args)},
        )
        queue = queue_write(self._dialect, schedule.host_id, schedule.spec.queue)
        writes = [queue, execution, audit]
        if staged:
            writes.append(pending_event_write(self._dialect, schedule, identity, now, args))
        await write_together(connection, self._dialect, writes)
        if is_event and not staged:
            await say_events(connection, self._dialect, schedule, {identity: now}, now, args=args)
        made = execution_as_written(values, schedule.spec.name)
        return Triggered(made, schedule, cancelled=replaced, is_staged=bool(staged))

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, schedule_id: UUID, *, host_id: UUID | None = None) -> Schedule:
        """Return a schedule. Raises NotFoundError.

        With a `host_id`, schedules of other hosts and deleted schedules are not found either.
        """
        row = (await self._database.fetch(Pool.API, _GET, {"wanted": schedule_id})).one_or_none()
        if row is None or (host_id is not None and (row.host_id != host_id or row.deleted_ts is not None)):
            raise NotFoundError("schedule", schedule_id)
        return schedule_of(row)

    async def find(self, host_id: UUID, name: str) -> Schedule | None:
        async with self._database.read(Pool.API) as connection:
            statement = select(schedule_t).where(
                schedule_t.c.host_id == host_id,
                schedule_t.c.schedule_name == name,
                schedule_t.c.deleted_ts.is_(None),
            )
            row = (await connection.execute(statement)).one_or_none()
        return None if row is None else schedule_of(row)

    async def executions(self, schedule_id: UUID, *, limit: int = 500) -> list[Execution]:
        """Return the schedule's executions, latest fire time first."""
        async with self._database.read(Pool.API) as connection:
            statement = (
                select_executions()
                .where(execution_t.c.schedule_id == schedule_id)
                .order_by(execution_t.c.fire_ts.desc(), execution_t.c.execution_id.desc())
                .limit(limit)
            )
            return [execution_of(row) for row in await connection.execute(statement)]

    async def _now(self, connection: AsyncConnection) -> datetime:
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        return now


_GET = select(schedule_t).where(schedule_t.c.schedule_id == bindparam("wanted"))
_ACTIONS = {kind: Action(f"schedule.{kind.value}") for kind in ChangeKind}

_AUDITED = ("paused", "paused_until_ts", "pause_reason", "managed_by", "managed_source", "deleted_ts")


def _differences(before: Schedule | None, after: Schedule) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the changed fields: their values before and after. Before is None for a new schedule."""
    became = _audited(after)
    if before is None:
        return None, became
    was = _audited(before)
    changed = [name for name in became if was[name] != became[name]]
    return {name: was[name] for name in changed}, {name: became[name] for name in changed}


def _audited(schedule: Schedule) -> dict[str, Any]:
    standing = {name: getattr(schedule, name) for name in _AUDITED}
    return {**stored_document(schedule.spec), **to_jsonable_python(standing)}


async def _exists(connection: AsyncConnection, execution_id: UUID) -> bool:
    wanted = select(execution_t.c.execution_id).where(execution_t.c.execution_id == execution_id)
    return (await connection.execute(wanted)).first() is not None


@contextmanager
def _named(schedule: Schedule) -> Iterator[None]:
    """Raise NameTakenError when the schedule's name violates the unique index."""
    try:
        yield
    except IntegrityError as error:
        # PostgreSQL's message has the name of the index, SQLite's the columns.
        if "schedule_name" in str(error.orig):
            raise NameTakenError(schedule.spec.name) from error
        raise
