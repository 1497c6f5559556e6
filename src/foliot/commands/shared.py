"""Commands on calendars and queues, which schedules share."""

from uuid import UUID

from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.model.calendar import CalendarSpec
from foliot.planning.change import Author
from foliot.scheduler.calendars_sql import CalendarRecord, Calendars
from foliot.worker.work_sql import Work


class SharedCommands:
    def __init__(self, database: Database, hints: Hints) -> None:
        self._calendars = Calendars(database)
        self._work = Work(database)
        self._hints = hints

    async def set_calendar(
        self,
        host_id: UUID,
        spec: CalendarSpec,
        author: Author,
        *,
        replaces: bool = True,
        calendar_id: UUID | None = None,
    ) -> CalendarRecord:
        """Create a calendar, or replace the one with its name. Raises NameTakenError if not `replaces`."""
        record = await self._calendars.put(host_id, spec, author, replaces=replaces, calendar_id=calendar_id)
        self._hints.send(Hint.SCHEDULES)
        return record

    async def delete_calendar(self, host_id: UUID, name: str, author: Author) -> None:
        """Delete a calendar. Raises CalendarInUseError while a schedule uses it."""
        await self._calendars.delete(host_id, name, author)
        self._hints.send(Hint.SCHEDULES)

    async def pause_queue(self, host_id: UUID, queue: str, author: Author, *, is_paused: bool) -> None:
        """Pause a queue, so that workers claim nothing from it, or resume it. Running executions continue."""
        await self._work.pause_queue(host_id, queue, author, is_paused=is_paused)
        self._hints.send(Hint.READY)
