"""Declare schedules from code: an upsert by name, so restarts and several processes create no duplicates."""

from uuid import UUID

from foliot.commands.schedules import ScheduleCommands
from foliot.commands.schedules_sql import Schedules
from foliot.model.errors import InvalidError, NameTakenError
from foliot.model.schedule import ManagedBy, Schedule, ScheduleSpec, ScheduleState
from foliot.planning.change import Author

TRIES = 5


class Declarer:
    def __init__(self, store: Schedules, commands: ScheduleCommands) -> None:
        self._store = store
        self._commands = commands

    async def declare(
        self, host_id: UUID, spec: ScheduleSpec, author: Author, managed_by: ManagedBy
    ) -> Schedule:
        """Create the schedule, or update the one of that name. Never ends a pause."""
        for _ in range(TRIES):
            known = await self._store.find(host_id, spec.name)
            if known is not None:
                if spec != known.spec:
                    return await self._commands.edit(known.schedule_id, spec, author)
                return known if known.state is not ScheduleState.ERROR else await self._revive(known, author)
            try:
                return await self._commands.create(host_id, spec, author, managed_by=managed_by)
            except NameTakenError:
                continue  # another process declared it between our read and our insert
        raise NameTakenError(spec.name)

    async def _revive(self, known: Schedule, author: Author) -> Schedule:
        """Try again to plan a schedule in state `error`. Leave it unchanged if that still fails."""
        try:
            return await self._commands.edit(known.schedule_id, known.spec, author)
        except InvalidError:
            return known
