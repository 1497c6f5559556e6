"""Control schedules and executions from Python, in a script or an application.

async with app.connect() as client:
    execution_id = await client.trigger("report-eu", args={"region": "fr"})
    await client.cancel(execution_id)
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import ValidationError

from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceSpec
from foliot.model.backfill import Backfill
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError, NotFoundError
from foliot.model.execution import AttemptRecord, Execution, LoggedLine, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, problems_of
from foliot.planning.change import Author
from foliot.timing.calendar import parse_ical


class Client:
    """A connection to the database of running instances. Schedules are identified by name."""

    def __init__(self, plan: InstanceSpec, *, user: str | None = None) -> None:
        self._instance = Instance(plan)
        self._user = user

    async def __aenter__(self) -> Self:
        await self._instance.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._instance.disconnect()

    # --- schedules --------------------------------------------------------------------------------

    async def schedule(self, name: str) -> Schedule:
        """Return the schedule. Raises NotFoundError."""
        found = await self._instance.store.schedules.find(DEFAULT_HOST_ID, name)
        if found is None:
            raise NotFoundError("schedule", name)
        return found

    async def pause(self, name: str, *, reason: str | None = None, until: datetime | None = None) -> Schedule:
        """Pause the schedule until it is resumed, or until the given time."""
        schedule = await self.schedule(name)
        author = Author(self._user, reason)
        return await self._instance.commands.schedules.pause(schedule.schedule_id, author, until_ts=until)

    async def resume(self, name: str) -> Schedule:
        schedule = await self.schedule(name)
        return await self._instance.commands.schedules.resume(schedule.schedule_id, Author(self._user))

    async def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Run the schedule now, besides its fire times. `args` override the schedule's arguments."""
        schedule = await self.schedule(name)
        made = await self._instance.commands.schedules.trigger(
            schedule.schedule_id, Author(self._user), by=TriggeredBy.API, args=args
        )
        return made.execution_id

    async def backfill(self, name: str, from_ts: datetime, to_ts: datetime) -> Backfill:
        """Run the schedule for its fire times from `from_ts` up to, but not including, `to_ts`."""
        schedule = await self.schedule(name)
        author = Author(self._user)
        return await self._instance.commands.schedules.backfill(schedule.schedule_id, from_ts, to_ts, author)

    async def backfill_state(self, backfill_id: UUID) -> Backfill:
        return await self._instance.store.backfills.get(backfill_id)

    # --- executions -------------------------------------------------------------------------------

    async def execution(self, execution_id: UUID) -> Execution:
        return await self._instance.store.executions.get(execution_id)

    async def executions(self, name: str, *, limit: int = 50) -> list[Execution]:
        """Return the latest executions of a schedule."""
        schedule = await self.schedule(name)
        return await self._instance.store.executions.for_schedule(schedule.schedule_id, limit=limit)

    async def attempts(self, execution_id: UUID) -> list[AttemptRecord]:
        return await self._instance.store.executions.attempts(execution_id)

    async def logs(self, execution_id: UUID) -> list[LoggedLine]:
        """Return the log lines of the task function, also while it still runs."""
        return await self._instance.store.executions.logs(execution_id)

    async def cancel(self, execution_id: UUID, *, reason: str | None = None) -> Execution:
        """Cancel an execution: at once if it waits, within a second if it runs."""
        return await self._instance.commands.executions.cancel(execution_id, Author(self._user, reason))

    async def retry(self, execution_id: UUID) -> Execution:
        """Retry an execution that failed, under the same id."""
        return await self._instance.commands.executions.retry(execution_id, Author(self._user))

    # --- queues, calendars and secrets ------------------------------------------------------------

    async def pause_queue(self, queue: str) -> None:
        """Stop workers from claiming from the queue until it is resumed. Running executions continue."""
        author = Author(self._user)
        await self._instance.commands.shared.pause_queue(DEFAULT_HOST_ID, queue, author, is_paused=True)

    async def resume_queue(self, queue: str) -> None:
        author = Author(self._user)
        await self._instance.commands.shared.pause_queue(DEFAULT_HOST_ID, queue, author, is_paused=False)

    async def set_secret(self, name: str, value: str) -> None:
        """Store a value for `${secret:name}`. It can't be read back."""
        await self._instance.secrets.set(DEFAULT_HOST_ID, name, value, Author(self._user))

    async def set_calendar(self, name: str, **fields: Any) -> None:
        """Create or replace a named set of excluded days: `days`, `weekdays`, `countries`, `timezone`."""
        try:
            spec = CalendarSpec(name=name, **fields)
        except ValidationError as error:
            raise InvalidError(problems_of(error)) from None
        await self._instance.commands.shared.set_calendar(DEFAULT_HOST_ID, spec, Author(self._user))

    async def import_calendar(self, name: str, ical: str, **fields: Any) -> None:
        """Create a calendar from the days of the events in an iCal file."""
        days = await asyncio.to_thread(parse_ical, ical)
        await self.set_calendar(name, days=days, **fields)

    async def delete_calendar(self, name: str) -> None:
        """Delete a calendar. Raises CalendarInUseError while a schedule names it."""
        await self._instance.commands.shared.delete_calendar(DEFAULT_HOST_ID, name, Author(self._user))
