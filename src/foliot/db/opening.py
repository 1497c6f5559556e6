"""Opens a database by its URL: PostgreSQL, a SQLite file, or `memory`."""

import shutil
import tempfile
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.hints import PostgresHints
from foliot.db.postgres import open_postgres
from foliot.db.postgres_url import parse_postgres_url
from foliot.db.sqlite import open_sqlite
from foliot.model.errors import SettingError
from foliot.timing.clock import Clock

DEFAULT_POOLS = {
    Pool.LEASE: 2,
    Pool.FIRING: 3,
    Pool.UPKEEP: 2,
    Pool.WORK: 5,
    Pool.API: 10,
    Pool.CONSUMER: 2,
}
MEMORY = "memory"
SETTING = "FOLIOT_DATABASE_URL"
READ_SETTING = "FOLIOT_DATABASE_READ_URL"


def open_database(
    url: str,
    *,
    clock: Clock,
    pools: dict[Pool, int] | None = None,
    ttl_s: float = 3.0,
    uses_hints: bool = True,
    read_url: str | None = None,
) -> Database:
    """Open a database by its URL. `memory`: a temporary SQLite file that is deleted when it closes.

    `read_url` is a replica, for reads inside `reading_from`.
    """
    sizes = DEFAULT_POOLS | (pools or {})
    if url == MEMORY:
        return _open_in_memory(clock, sizes)
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return open_sqlite(parsed, clock=clock, sizes=sizes)
    database = open_postgres(parsed, sizes=sizes, ttl_s=ttl_s, uses_hints=uses_hints)
    if read_url is not None:
        database.replica = open_postgres(
            parse_url(read_url, READ_SETTING),
            # LEASE: a pool of its own for health checks, so that they do not wait behind list queries.
            sizes={Pool.API: sizes[Pool.API], Pool.LEASE: 1},
            ttl_s=ttl_s,
            uses_hints=uses_hints,
            setting=READ_SETTING,
        )
    return database


def _open_in_memory(clock: Clock, sizes: dict[Pool, int]) -> Database:
    # A file, because connections can't share SQLite's in-memory databases without losing the busy
    # timeout. It is never flushed to disk, so it is as fast as memory.
    folder = Path(tempfile.mkdtemp(prefix="foliot-"))
    url = URL.create("sqlite", database=str(folder / "memory.db"))
    database = open_sqlite(url, clock=clock, sizes=sizes, is_durable=False)
    database.on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return database


def has_server(url: str) -> bool:
    """Whether a server, and not a file of this machine, holds the database."""
    return parse_url(url).get_backend_name() == "postgresql"


def file_of(url: str) -> Path | None:
    """Return the file of an embedded database. None: a server holds it, or it is in memory."""
    parsed = parse_url(url)
    if url == MEMORY or parsed.get_backend_name() != "sqlite" or parsed.database is None:
        return None
    return Path(parsed.database)


def open_hints(url: str) -> PostgresHints | None:
    """Open what carries hints to other processes through the database. None: it can't carry any."""
    return PostgresHints(parse_url(url)) if has_server(url) else None


def parse_url(url: str, setting: str = SETTING) -> URL:
    """Parse the URL of a setting. Raises SettingError with an example of a valid URL."""
    right = "postgresql://user:password@host:5432/database"
    if setting == SETTING:
        right = f"sqlite:///foliot.db or {right}"
    if url == MEMORY and setting == SETTING:
        return URL.create("sqlite", database=MEMORY)
    try:
        backend = url.partition(":")[0].partition("+")[0]
        is_postgres = backend in ("postgres", "postgresql")
        parsed = parse_postgres_url(url, setting) if is_postgres else make_url(url)
    except (ArgumentError, ValueError):
        raise SettingError(f"{setting} is not a database URL; right would be {right}") from None
    if not is_postgres and (backend != "sqlite" or setting != SETTING):
        raise SettingError(f"{setting} names {backend}, which is not supported; use {right}")
    if not is_postgres and parsed.query:
        raise SettingError(f"{setting}: unsupported parameter {min(parsed.query)}; SQLite takes none")
    if not parsed.database or parsed.database == ":memory:":
        raise SettingError(f"{setting} names no database; right would be {right}")
    return parsed
