"""Direct access to the database, for commands that do not use the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from foliot.instance.settings import Settings
from foliot.instance.store import MEMORY, SqlStore, open_store, parse_url
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
    url = parse_url(settings.database_url)
    if url.get_backend_name() != "sqlite" or settings.database_url == MEMORY:
        return None
    assert url.database is not None
    return None if Path(url.database).exists() else url.database
