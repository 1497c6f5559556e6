"""Commands on schedules: create, edit, pause, resume, delete, trigger and backfill."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import PydanticSerializationError, to_json

from foliot.commands.admission import DefinitionChecker, completed
from foliot.commands.schedules_sql import Schedules, Triggered
from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.model.backfill import Backfill
from foliot.model.errors import InvalidError, NotFoundError, OverloadedError
from foliot.model.event import (
    CancelledExecution,
    ExecutionsCancelled,
    ExecutionTriggered,
    FiredExecution,
    Observer,
    ScheduleChanged,
    SkippedExecution,
    settled_at_once,
)
from foliot.model.execution import Execution, TriggeredBy
from foliot.model.ids import schedule_id_of
from foliot.model.policy import OverlapPolicy
from foliot.model.schedule import ChangeKind, ManagedBy, Schedule, ScheduleSpec
from foliot.planning.change import Author, Owner, PlannedChange, adopt, create, delete, edit, pause, resume
from foliot.scheduler.backfills_sql import Backfills
from foliot.scheduler.calendars_sql import Calendars

Redefine = Callable[[Schedule], ScheduleSpec]
"""Computes a schedule's new definition from its current state."""

TRIES = 20


class _ChecksDifferError(Exception):
    """The target or calendars changed after the data for checking them was read: read it again."""


class ScheduleCommands:
    """Commands on schedules. If `host_id` is given, schedules of other hosts raise NotFoundError."""

    def __init__(
        self, database: Database, hints: Hints, observer: Observer, admission: DefinitionChecker
    ) -> None:
        self._schedules = Schedules(database)
        self._calendars = Calendars(database)
        self._backfills = Backfills(database)
        self._hints = hints
        self._observer = observer
        self._admission = admission

    # --- defining ---------------------------------------------------------------------------------

    async def create(
        self,
        host_id: UUID,
        spec: ScheduleSpec,
        author: Author,
        *,
        managed_by: ManagedBy = ManagedBy.API,
        managed_source: str | None = None,
        reserved_id: UUID | None = None,
    ) -> Schedule:
        """Create a schedule. Raises InvalidError, NameTakenError.

        `reserved_id` makes the call idempotent: a second call with the same id returns the same schedule.
        """
        schedule_id: UUID | None = None
        if reserved_id is not None:
            schedule_id = schedule_id_of(reserved_id, host_id, spec.name)
            try:
                return await self._schedules.get(schedule_id, host_id=host_id)
            except NotFoundError:
                pass
        spec = await self._admission.complete(spec)
        check_target = await self._admission.checker(spec)
        calendars = await self._calendars_for(host_id, spec)

        def plan(now: datetime) -> PlannedChange:
            return create(
                spec,
                host_id=host_id,
                now=now,
                author=author,
                managed_by=managed_by,
                managed_source=managed_source,
                schedule_id=schedule_id,
                check_target=check_target,
                calendars=calendars,
            )

        schedule = await self._schedules.create(plan, author)
        self._tell(schedule, ChangeKind.CREATED, author)
        return schedule

    async def edit(
        self,
        schedule_id: UUID,
        spec: ScheduleSpec | Redefine,
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
        owner: Owner | None = None,
    ) -> Schedule:
        """Change the definition. Raises InvalidError, NotFoundError, StaleVersionError, NameTakenError.

        If `spec` is a function, it runs under the schedule's lock, so that no concurrent change is lost.
        If `owner` is given, the schedule gets this owner too.
        """
        for _ in range(TRIES):
            try:
                return await self._edit(schedule_id, spec, author, host_id, expected_version, owner)
            except _ChecksDifferError:
                continue
        raise OverloadedError("too many change this schedule at once; try again")

    async def _edit(
        self,
        schedule_id: UUID,
        wanted: ScheduleSpec | Redefine,
        author: Author,
        host_id: UUID | None,
        expected_version: int | None,
        owner: Owner | None,
    ) -> Schedule:
        known = await self._schedules.get(schedule_id, host_id=host_id)
        foreseen = wanted if isinstance(wanted, ScheduleSpec) else wanted(known)
        defaults = await self._admission.defaults_of([foreseen])
        check_target = await self._admission.checker(foreseen)
        calendars = await self._calendars_for(known.host_id, foreseen)

        def plan(schedule: Schedule, now: datetime) -> PlannedChange | None:
            spec = wanted if isinstance(wanted, ScheduleSpec) else wanted(schedule)
            if (spec.target, spec.calendars) != (foreseen.target, foreseen.calendars):
                raise _ChecksDifferError
            spec = completed(spec, defaults)
            change = edit(
                schedule, spec, now=now, author=author, check_target=check_target, calendars=calendars
            )
            return change if owner is None else adopt(schedule, change, owner, now=now, author=author)

        return await self._change(schedule_id, plan, author, host_id, expected_version)

    async def pause(
        self,
        schedule_id: UUID,
        author: Author,
        *,
        until_ts: datetime | None = None,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        """Pause a schedule. It does not fire until it is resumed, or until `until_ts` (None: no end)."""

        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            if until_ts is not None and until_ts <= now:
                detail = "must lie in the future"
                raise InvalidError.at("/until_ts", "in_the_past", detail, "a later time, or none")
            return pause(known, now=now, author=author, until_ts=until_ts)

        return await self._change(schedule_id, plan, author, host_id, expected_version)

    async def resume(
        self,
        schedule_id: UUID,
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            return resume(known, now=now, author=author)

        return await self._change(schedule_id, plan, author, host_id, expected_version)

    async def delete(
        self,
        schedule_id: UUID,
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            return delete(known, now=now, author=author)

        return await self._change(schedule_id, plan, author, host_id, expected_version)

    async def _change(
        self,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], PlannedChange | None],
        author: Author,
        host_id: UUID | None,
        expected_version: int | None,
    ) -> Schedule:
        changed = await self._schedules.change_known(
            schedule_id, plan, author, host_id=host_id, expected_version=expected_version
        )
        if changed.kind is not None:
            self._tell(changed.schedule, changed.kind, author, changed.skipped)
            tell_cancelled(self._observer, changed.cancelled)
        return changed.schedule

    async def _calendars_for(self, host_id: UUID, spec: ScheduleSpec) -> frozenset[str] | None:
        """Return the names of the host's calendars. None: the definition uses no calendars."""
        if not spec.calendars:
            return None
        return await self._calendars.names(host_id)

    def _tell(
        self, schedule: Schedule, kind: ChangeKind, author: Author, skipped: SkippedExecution | None = None
    ) -> None:
        self._hints.send(Hint.SCHEDULES, (schedule.schedule_id,))
        self._observer.notify(
            ScheduleChanged(
                schedule.schedule_id,
                schedule.spec.name,
                kind,
                schedule.aggregate_version,
                author.name,
                schedule.updated_ts,
                author.trace_context,
                skipped,
            )
        )

    # --- running ----------------------------------------------------------------------------------

    async def trigger(
        self,
        schedule_id: UUID,
        author: Author,
        *,
        by: TriggeredBy,
        args: Mapping[str, Any] | None = None,
        execution_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> Execution:
        """Run a schedule now, in addition to its fire times. `args` are merged over the schedule's own."""
        if args:
            _require_storable(args)
            target = (await self._schedules.get(schedule_id, host_id=host_id)).spec.target
            await self._admission.check_arguments(target, args)
        triggered = await self._schedules.trigger_known(
            schedule_id, by=by, author=author, args=args, execution_id=execution_id, host_id=host_id
        )
        is_event = triggered.schedule.spec.target.is_event
        if triggered.is_staged:
            self._hints.send(Hint.PENDING_EVENTS)
        else:
            self._hints.send(Hint.EVENTS if is_event else Hint.READY)
        tell_replaced(self._hints, triggered.schedule)
        if triggered.is_new:
            self._tell_triggered(triggered, author, is_event=is_event)
        return triggered.execution

    def _tell_triggered(self, triggered: Triggered, author: Author, *, is_event: bool) -> None:
        made, schedule = triggered.execution, triggered.schedule
        self._observer.notify(
            ExecutionTriggered(
                made.execution_id,
                schedule.schedule_id,
                schedule.spec.name,
                made.aggregate_version,
                made.fire_ts,
                made.queue,
                made.triggered_by,
                author.name,
                made.trace_context,
            )
        )
        tell_cancelled(self._observer, triggered.cancelled)
        if is_event:
            fired = FiredExecution(
                made.execution_id,
                schedule.schedule_id,
                made.fire_ts,
                0.0,
                0,
                schedule.spec.name,
                made.queue,
                made.aggregate_version,
            )
            self._observer.notify(settled_at_once("", [fired]))

    async def backfill(
        self,
        schedule_id: UUID,
        from_ts: datetime,
        to_ts: datetime,
        author: Author,
        *,
        backfill_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> Backfill:
        """Run a schedule for the fire times that it would have had in a range, a limited number at once."""
        backfill = await self._backfills.create(
            schedule_id, from_ts, to_ts, author, backfill_id=backfill_id, host_id=host_id
        )
        self._hints.send(Hint.BACKFILL)
        return backfill

    async def cancel_backfill(
        self, backfill_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> Backfill:
        """Stop a backfill and cancel its waiting executions. Those that run continue."""
        backfill, cancelled = await self._backfills.cancel(backfill_id, author, host_id=host_id)
        self._hints.send(Hint.ENDED)
        tell_cancelled(self._observer, cancelled)
        return backfill


def tell_cancelled(observer: Observer, cancelled: Sequence[CancelledExecution]) -> None:
    """Notify the observer of the executions that a committed command has cancelled."""
    if cancelled:
        observer.notify(ExecutionsCancelled(cancelled))


def tell_replaced(hints: Hints, schedule: Schedule) -> None:
    """Hint workers to check for cancellations, if a new run may have replaced a running one."""
    if schedule.spec.overlap.policy is OverlapPolicy.CANCEL_RUNNING:
        hints.send(Hint.CANCEL)


def _require_storable(args: Mapping[str, Any]) -> None:
    try:
        text = to_json(args).decode()
    except PydanticSerializationError:
        detail = "must be JSON, of whole characters"
        raise InvalidError.at("/args", "not_json", detail, "text, numbers, lists and objects") from None
    if "\\u0000" in text:
        raise InvalidError.at("/args", "nul", "must not contain NUL characters", "leave them out")
