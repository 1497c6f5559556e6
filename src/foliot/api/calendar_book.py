"""The calendars that times are shown with."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from foliot.api.services import Services
from foliot.model.errors import InvalidError, NotFoundError
from foliot.timing.calendar import Calendar, CalendarBook, compile_calendar


async def book_of(services: Services, host_id: UUID, names: Iterable[str]) -> CalendarBook:
    """Those of a host that there are, and that can be understood."""
    found: dict[tuple[UUID, str], Calendar] = {}
    for name in sorted(set(names)):
        with suppress(NotFoundError, InvalidError):
            record = await services.store.calendars.get(host_id, name)
            # The holidays of a country take a while to count.
            found[host_id, name] = await asyncio.to_thread(compile_calendar, record.spec)
    return found
