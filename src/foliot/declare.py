"""Declaring a schedule: an upsert by name, so any number of processes or restarts never doubles it."""

from datetime import datetime
from uuid import UUID

from foliot.model.errors import NameTakenError
from foliot.model.event import Observer, ScheduleChanged
from foliot.model.schedule import ManagedBy, Schedule, ScheduleSpec
from foliot.planning.admit import CheckTarget
from foliot.planning.change import Author, Change, create, edit
from foliot.store.hints import Hint, Hints
from foliot.store.protocol import CalendarStore, ScheduleStore

TRIES = 5


class Declarer:
    def __init__(
        self,
        store: ScheduleStore,
        hints: Hints,
        observer: Observer,
        check_target: CheckTarget,
        calendars: CalendarStore | None = None,
    ) -> None:
        self._store = store
        self._hints = hints
        self._observer = observer
        self._check_target = check_target
        self._calendars = calendars

    async def declare(
        self, host_id: UUID, spec: ScheduleSpec, author: Author, managed_by: ManagedBy
    ) -> Schedule:
        """Create the schedule, or bring the one of that name up to date. A pause is never lifted by this."""
        for _ in range(TRIES):
            known = await self._store.find(host_id, spec.name)
            if known is not None:
                return await self._bring_up_to_date(known, spec, author)
            try:
                return await self._create(host_id, spec, author, managed_by)
            except NameTakenError:
                continue  # another process declared it between our look and our insert
        raise NameTakenError(spec.name)

    async def _create(
        self, host_id: UUID, spec: ScheduleSpec, author: Author, managed_by: ManagedBy
    ) -> Schedule:
        planned: list[Change] = []
        calendars = await self._calendars_for(host_id, spec)

        def plan(now: datetime) -> Change:
            change = create(
                spec,
                host_id=host_id,
                now=now,
                author=author,
                managed_by=managed_by,
                check_target=self._check_target,
                calendars=calendars,
            )
            planned.append(change)
            return change

        schedule = await self._store.create(plan, author)
        self._tell(planned[-1], author)
        return schedule

    async def _bring_up_to_date(self, known: Schedule, spec: ScheduleSpec, author: Author) -> Schedule:
        if spec == known.spec:
            return known
        planned: list[Change] = []
        calendars = await self._calendars_for(known.host_id, spec)

        def plan(schedule: Schedule, now: datetime) -> Change | None:
            change = edit(
                schedule,
                spec,
                now=now,
                author=author,
                check_target=self._check_target,
                calendars=calendars,
            )
            if change is not None:
                planned.append(change)
            return change

        schedule = await self._store.change(known.schedule_id, plan, author)
        if planned:
            self._tell(planned[-1], author)
        return schedule

    async def _calendars_for(self, host_id: UUID, spec: ScheduleSpec) -> frozenset[str] | None:
        """The names a definition may choose from, read only if it names any."""
        if not spec.calendars or self._calendars is None:
            return None
        return await self._calendars.names(host_id)

    def _tell(self, change: Change, author: Author) -> None:
        schedule = change.schedule
        self._hints.send(Hint.SCHEDULES, (schedule.schedule_id,))
        self._observer.notify(
            ScheduleChanged(
                schedule.schedule_id,
                schedule.spec.name,
                change.kind,
                schedule.aggregate_version,
                author.name,
            )
        )
