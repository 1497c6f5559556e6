"""Direct access to the database, for commands that do not use the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from foliot.db.opening import file_of
from foliot.instance.settings import Settings
from foliot.instance.store import SqlStore, open_store
from foliot.timing.clock import SystemClock


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[SqlStore]:
    store = open_store(
        settings.database_url,
        clock=SystemClock(),
        ttl_s=settings.lease_ttl_seconds,
        uses_hints=settings.uses_hints,
    )
    try:
        yield store
    finally:
        await store.close()


def missing_file(settings: Settings) -> str | None:
    """Return the configured SQLite file if it is missing: connecting would create it. None: not missing."""
    path = file_of(settings.database_url)
    return None if path is None or path.exists() else str(path)
