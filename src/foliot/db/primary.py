"""Checks that the database accepts writes: Foliot needs the primary, not a replica or a read-only server."""

from dataclasses import dataclass

from sqlalchemy import text

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.model.errors import SettingError


@dataclass(frozen=True, slots=True)
class ReadOnlyReason:
    """Why the database accepts no writes."""

    what: str
    advice: str


REPLICA = ReadOnlyReason(
    "is a replica",
    "FOLIOT_DATABASE_URL must be the primary; a replica may be given as FOLIOT_DATABASE_READ_URL",
)
READ_ONLY = ReadOnlyReason(
    "takes no writes", "turn default_transaction_read_only off for this user or database"
)

_STANDING = text("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")


async def refusal_of(database: Database) -> ReadOnlyReason | None:
    """Return why the database refuses writes. None: it accepts them, as far as this shows without a write."""
    if database.dialect.name != "postgresql":
        return None
    async with database.read(Pool.API) as connection:
        is_replica, is_read_only = (await connection.execute(_STANDING)).one()
    if is_replica:
        return REPLICA
    return READ_ONLY if is_read_only else None


async def require_primary(database: Database) -> None:
    """Raise a SettingError with advice, unless the database accepts writes."""
    refusal = await refusal_of(database)
    if refusal is not None:
        raise SettingError(f"the database at {database.url} {refusal.what}: {refusal.advice}")
