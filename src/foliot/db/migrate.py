"""Upgrades a database's schema, and checks whether it is up to date.

Any number of processes may start at once: a lock in the database serializes upgrades, and the second one
finds nothing to do.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, column, insert, inspect, select, table, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import OFFSETS
from foliot.db.rows.shard_rows import make_shards
from foliot.db.tables.access import host_t
from foliot.db.tables.events import log_counter
from foliot.model.errors import SchemaError
from foliot.model.ids import DEFAULT_HOST_ID

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "schema_version_t"
_UPGRADE_LOCK = 0x666F6C696F74
"""Key of the PostgreSQL advisory lock for upgrades: "foliot" in ASCII."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    current: str | None
    """The database's revision. None: it is empty."""
    wanted: str
    """The revision that this version of Foliot needs."""
    pending: tuple[str, ...]
    """Revisions that an upgrade would run, oldest first."""

    @property
    def is_usable(self) -> bool:
        """Whether the schema is up to date or newer. Older code runs on a newer one: migrations only add."""
        return self.current is not None and not self.pending


@cache
def revisions() -> tuple[str, ...]:
    """Return all revisions, oldest first, by their file names: r0001_initial.py is revision 0001."""
    return tuple(sorted(each.name[1:5] for each in (_MIGRATIONS / "versions").glob("r[0-9]*.py")))


def _status(connection: Connection) -> SchemaStatus:
    current = None
    if inspect(connection).has_table(_VERSION_TABLE):
        current = connection.execute(
            select(column("version_num")).select_from(table(_VERSION_TABLE))
        ).scalar()
    known = revisions()
    if current is not None and current not in known:
        return SchemaStatus(current, known[-1], ())
    pending = known if current is None else known[known.index(current) + 1 :]
    return SchemaStatus(current, known[-1], pending)


def run_migrations(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations, up to a revision."""
    # Imported here, because most processes never upgrade and need not load alembic.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


async def schema_status(database: Database) -> SchemaStatus:
    async with database.read(Pool.API) as connection:
        return await connection.run_sync(_status)


async def require_schema(database: Database, *, advice: str = "") -> None:
    """Raise a SchemaError with advice, unless this version can work with the database's schema."""
    status = await schema_status(database)
    if not status.is_usable:
        state = "has no schema yet" if status.current is None else f"is at schema {status.current}"
        raise SchemaError(
            f"the database at {database.url} {state}, this version needs {status.wanted}: "
            f"run `foliot db upgrade`{advice}"
        )


async def upgrade(database: Database, *, shards: int = 1) -> SchemaStatus:
    """Upgrade the schema to the latest revision. Return its status before."""

    async def work(connection: AsyncConnection) -> SchemaStatus:
        if database.dialect.name == "postgresql":
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        before = await connection.run_sync(_status)
        if before.pending:
            await connection.run_sync(run_migrations)
        await _make_first_rows(connection, database, shards)
        return before

    return await database.write(Pool.API, work)


async def _make_first_rows(connection: AsyncConnection, database: Database, shards: int) -> None:
    await make_shards(connection, shards)
    host = select(host_t.c.host_id).where(host_t.c.host_id == DEFAULT_HOST_ID)
    if (await connection.execute(host)).first() is None:
        await connection.execute(
            insert(host_t).values(
                host_id=DEFAULT_HOST_ID, host_name="default", created_ts=database.dialect.now()
            )
        )
    await connection.execute(
        database.dialect.insert(log_counter).values(id=OFFSETS, next_offset=1).on_conflict_do_nothing()
    )
