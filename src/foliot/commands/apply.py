"""Synchronise schedules with files: plan the changes, show them, then apply them.

A set of files is a *source*. A source owns the schedules that it has created or adopted: other sources don't
change them, and only the owner may prune them. All definitions are checked before anything is written. Then
each schedule is changed in its own transaction, guarded by the version that was planned for. To complete an
interrupted run, apply again.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from foliot.commands.admission import DefinitionChecker, completed
from foliot.commands.schedules import ScheduleCommands
from foliot.db.database import Database
from foliot.model.errors import FoliotError, InvalidError, Problem
from foliot.model.schedule import ManagedBy, Schedule, ScheduleSpec, ScheduleState
from foliot.planning.change import Author, Owner, create, edit
from foliot.planning.document_diff import Difference, diff
from foliot.queries.schedule_list import ScheduleFilter, ScheduleList
from foliot.scheduler.calendars_sql import Calendars

PAGE = 500


class ApplyAction(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    CONFLICT = "conflict"
    """Another source or code owns the schedule; `adopt` would take it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyStep:
    """The planned change of one schedule."""

    action: ApplyAction
    name: str
    schedule_id: UUID | None = None
    version: int | None = None
    """The version of the schedule when the step was planned. None: the schedule does not exist yet."""
    spec: ScheduleSpec | None = None
    changes: Sequence[Difference] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AppliedStep:
    step: ApplyStep
    schedule_id: UUID | None
    error: FoliotError | None = None


class ApplyCommands:
    def __init__(self, database: Database, schedules: ScheduleCommands, admission: DefinitionChecker) -> None:
        self._database = database
        self._schedule_list = ScheduleList(database)
        self._calendars = Calendars(database)
        self._schedules = schedules
        self._admission = admission

    async def plan(
        self,
        host_id: UUID,
        specs: Sequence[ScheduleSpec],
        *,
        source: str,
        author: Author,
        prunes: bool,
        adopts: bool,
    ) -> list[ApplyStep]:
        """Return the steps in the order of the files, followed by the schedules to prune.

        Raises InvalidError with the problems of all definitions.
        """
        _require_distinct(specs)
        specs = await self._completed(specs)
        listed = await self._schedule_list.by_names(host_id, [spec.name for spec in specs])
        known = {each.schedule.spec.name: each.schedule for each in listed}
        calendars = await self._calendars.names(host_id)
        now = await self._database.now()
        problems: list[Problem] = []
        steps = []
        for index, spec in enumerate(specs):
            # Yield to other requests: suggesting the nearest name for a wrong time zone takes 15 ms.
            await asyncio.sleep(0)
            schedule = known.get(spec.name)
            steps.append(_step(spec, schedule, source, adopts=adopts))
            if steps[-1].action in (ApplyAction.CREATE, ApplyAction.UPDATE):
                found = await self._problems(spec, schedule, host_id, now, author, calendars)
                problems += _under(index, found)
        if problems:
            raise InvalidError(problems)
        if prunes:
            steps += await self._pruned(host_id, source, {spec.name for spec in specs})
        return steps

    async def _completed(self, specs: Sequence[ScheduleSpec]) -> Sequence[ScheduleSpec]:
        """Fill in the defaults that saving would fill in. Otherwise every plan would show them as changes."""
        defaults = await self._admission.defaults_of(specs)
        done, problems = list[ScheduleSpec](), list[Problem]()
        for index, spec in enumerate(specs):
            try:
                done.append(completed(spec, defaults))
            except InvalidError as error:
                problems += _under(index, error.problems)
        if problems:
            raise InvalidError(problems)
        return done

    async def _problems(
        self,
        spec: ScheduleSpec,
        schedule: Schedule | None,
        host_id: UUID,
        now: datetime,
        author: Author,
        calendars: frozenset[str],
    ) -> Sequence[Problem]:
        """Return the problems for which the change would be refused."""
        check = await self._admission.checker(spec)
        try:
            if schedule is None:
                create(spec, host_id=host_id, now=now, author=author, check_target=check, calendars=calendars)
            else:
                edit(schedule, spec, now=now, author=author, check_target=check, calendars=calendars)
        except InvalidError as error:
            return error.problems
        return ()

    async def _pruned(self, host_id: UUID, source: str, kept: set[str]) -> list[ApplyStep]:
        return [
            ApplyStep(
                action=ApplyAction.DELETE,
                name=schedule.spec.name,
                schedule_id=schedule.schedule_id,
                version=schedule.aggregate_version,
                detail="no longer in the files",
            )
            async for schedule in self._of_files(host_id)
            if schedule.managed_source == source and schedule.spec.name not in kept
        ]

    async def _of_files(self, host_id: UUID) -> AsyncIterator[Schedule]:
        wanted = ScheduleFilter(host_id=host_id, managed_by=(ManagedBy.FILE,))
        position = None
        while True:
            page = await self._schedule_list.page(wanted, after=position, limit=PAGE)
            for listed in page.items:
                yield listed.schedule
            if page.next is None:
                return
            position = page.next

    async def carry_out(
        self, host_id: UUID, steps: Sequence[ApplyStep], *, source: str, author: Author
    ) -> list[AppliedStep]:
        """Apply the planned steps. An error with one schedule does not stop the others."""
        done = []
        for step in steps:
            try:
                done.append(AppliedStep(step, await self._do(host_id, step, source, author)))
            except FoliotError as error:
                done.append(AppliedStep(step, step.schedule_id, error))
        return done

    async def _do(self, host_id: UUID, step: ApplyStep, source: str, author: Author) -> UUID | None:
        match step.action:
            case ApplyAction.CREATE:
                assert step.spec is not None
                made = await self._schedules.create(
                    host_id, step.spec, author, managed_by=ManagedBy.FILE, managed_source=source
                )
                return made.schedule_id
            case ApplyAction.UPDATE:
                assert step.spec is not None
                assert step.schedule_id is not None
                await self._schedules.edit(
                    step.schedule_id,
                    step.spec,
                    author,
                    host_id=host_id,
                    expected_version=step.version,
                    owner=Owner(ManagedBy.FILE, source),
                )
            case ApplyAction.DELETE:
                assert step.schedule_id is not None
                await self._schedules.delete(
                    step.schedule_id, author, host_id=host_id, expected_version=step.version
                )
            case ApplyAction.UNCHANGED | ApplyAction.CONFLICT:
                pass
        return step.schedule_id


def _step(spec: ScheduleSpec, known: Schedule | None, source: str, *, adopts: bool) -> ApplyStep:
    if known is None:
        return ApplyStep(action=ApplyAction.CREATE, name=spec.name, spec=spec)
    changes = diff(known.spec.model_dump(mode="json"), spec.model_dump(mode="json"))
    is_own = known.managed_by is ManagedBy.FILE and known.managed_source == source
    is_free = known.managed_by in (ManagedBy.API, ManagedBy.UI)
    # Applying an unchanged definition also retries a schedule that could not be planned (state ERROR).
    is_parked = known.state is ScheduleState.ERROR and (is_own or is_free)
    if not changes and not adopts and not is_parked:
        action, detail = ApplyAction.UNCHANGED, "" if is_own else f"stays with {_owner(known)}"
    elif is_own or is_free or adopts:
        has_change = bool(changes) or not is_own or is_parked
        action = ApplyAction.UPDATE if has_change else ApplyAction.UNCHANGED
        detail = "" if is_own else f"taken over from {_owner(known)}"
    else:
        action, detail = ApplyAction.CONFLICT, f"is managed by {_owner(known)}; adopt would take it over"
    return ApplyStep(
        action=action,
        name=spec.name,
        schedule_id=known.schedule_id,
        version=known.aggregate_version,
        spec=spec,
        changes=changes,
        detail=detail,
    )


def _under(index: int, problems: Sequence[Problem]) -> list[Problem]:
    return [
        Problem(f"/schedules/{index}{each.pointer}", each.code, each.detail, each.hint) for each in problems
    ]


def _owner(schedule: Schedule) -> str:
    if schedule.managed_by is ManagedBy.FILE:
        return f'the files of "{schedule.managed_source}"'
    return {ManagedBy.CODE: "code", ManagedBy.UI: "people in the UI"}.get(schedule.managed_by, "the API")


def _require_distinct(specs: Sequence[ScheduleSpec]) -> None:
    first: dict[str, int] = {}
    twice = [
        Problem(f"/schedules/{index}/name", "taken", f"is the name of schedule {first[spec.name]} too")
        for index, spec in enumerate(specs)
        if first.setdefault(spec.name, index) != index
    ]
    if twice:
        raise InvalidError(twice)


def count_of(steps: Sequence[ApplyStep]) -> Mapping[str, int]:
    return {action.value: sum(step.action is action for step in steps) for action in ApplyAction}
