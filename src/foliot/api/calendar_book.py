"""Load the calendars needed to show fire times."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from foliot.api.services import Services
from foliot.model.errors import InvalidError, NotFoundError
from foliot.scheduler.calendars_sql import Calendars
from foliot.timing.calendar import Calendar, CalendarBook, compile_calendar


async def book_of(services: Services, host_id: UUID, names: Iterable[str]) -> CalendarBook:
    """Return the host's calendars with these names. Missing and invalid ones are left out."""
    found: dict[tuple[UUID, str], Calendar] = {}
    for name in sorted(set(names)):
        with suppress(NotFoundError, InvalidError):
            record = await Calendars(services.database).get(host_id, name)
            # In a thread, because computing the holidays of a country is slow.
            found[host_id, name] = await asyncio.to_thread(compile_calendar, record.spec)
    return found
