"""Statements on `api_key_t`: API keys, stored as hashes of their secrets.

The statement that reads a key also checks by the store's clock whether it is valid. So a key ends for all
instances at the same moment, and there is no cache that a revocation would have to clear.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, exists, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.access.hosts import require_host, require_name
from foliot.access.keys import ApiKey, hash_of
from foliot.access.principal import Role
from foliot.db.database import Database
from foliot.db.dialect import Dialect, Pool
from foliot.db.rows.from_row import from_row
from foliot.db.tables.access import api_key_t
from foliot.model.errors import AlreadyShownError, InvalidError, NotFoundError
from foliot.planning.change import Author

TOUCHED_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The public data of a key, without its secret."""

    key_id: str
    host_id: UUID
    name: str
    role: Role
    created_by: str | None
    created_ts: datetime
    expires_ts: datetime | None
    revoked_ts: datetime | None
    last_used_ts: datetime | None


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key with what is needed to check it."""

    record: KeyRecord
    secret_hash: str
    is_live: bool
    """Neither revoked nor expired."""
    is_touch_due: bool
    """Whether the last recorded use is so old that `touch` would write a new one."""


class MadeKey(NamedTuple):
    record: KeyRecord
    text: str
    """The key itself. It is shown once and not stored."""


class ApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        # Built once: it runs for every request, and building it takes longer than running it.
        self._by_id = select(
            api_key_t, is_live(self._dialect).label("is_live"), self._is_touch_due().label("is_touch_due")
        ).where(api_key_t.c.key_id == bindparam("key_id"))

    async def create(
        self,
        host_id: UUID,
        name: str,
        role: Role,
        expires_ts: datetime | None,
        author: Author,
        *,
        key_id: str | None = None,
    ) -> MadeKey:
        """Create a key. Raises InvalidError, and NotFoundError if the host does not exist.

        Raises AlreadyShownError if `key_id` exists: the key was created, but its secret can't be shown again.
        """
        require_name(name)
        if expires_ts is not None and expires_ts.tzinfo is None:
            raise InvalidError.at("/expires_ts", "timezone", "must have a time zone", "such as …T12:00:00Z")
        key = ApiKey.new(key_id)

        async def work(connection: AsyncConnection) -> KeyRecord:
            if key_id is not None and await _exists(connection, key_id):
                raise AlreadyShownError(
                    f"key {key_id} was made, and its answer lost: revoke it, make another"
                )
            await require_host(connection, host_id)
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            if expires_ts is not None and expires_ts <= now:
                raise InvalidError.at("/expires_ts", "past", "must be in the future", f"it is {now:%FT%TZ}")
            statement = insert(api_key_t).values(
                key_id=key.key_id,
                host_id=host_id,
                name=name,
                role=role.value,
                secret_hash=hash_of(key.secret),
                created_by=author.name,
                created_ts=now,
                expires_ts=expires_ts,
            )
            made = _record_of((await connection.execute(statement.returning(*api_key_t.c))).one())
            shown = {"name": name, "role": role.value, "expires_ts": expires_ts and expires_ts.isoformat()}
            await self._audit(connection, author, Action.KEY_CREATED, made, now, shown)
            return made

        return MadeKey(await self._database.write(Pool.API, work), key.text)

    async def revoke(self, key_id: str, host_id: UUID, author: Author) -> KeyRecord:
        """Revoke a key. An already revoked key stays unchanged. Raises NotFoundError."""
        if not ApiKey.has_id(key_id):  # also for text that no database can store
            raise NotFoundError("key", key_id)

        async def work(connection: AsyncConnection) -> KeyRecord:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            of_host = and_(api_key_t.c.key_id == key_id, api_key_t.c.host_id == host_id)
            revoking = update(api_key_t).where(of_host, api_key_t.c.revoked_ts.is_(None))
            statement = revoking.values(revoked_ts=now).returning(*api_key_t.c)
            row = (await connection.execute(statement)).one_or_none()
            if row is not None:
                revoked = _record_of(row)
                shown = {"name": revoked.name, "revoked_ts": now.isoformat()}
                await self._audit(connection, author, Action.KEY_REVOKED, revoked, now, shown)
                return revoked
            row = (await connection.execute(select(api_key_t).where(of_host))).one_or_none()
            if row is None:
                raise NotFoundError("key", key_id)
            return _record_of(row)

        return await self._database.write(Pool.API, work)

    async def _audit(
        self,
        connection: AsyncConnection,
        author: Author,
        action: Action,
        key: KeyRecord,
        now: datetime,
        shown: dict[str, Any],
    ) -> None:
        await record_audit(
            connection,
            self._dialect,
            author,
            action,
            key.key_id,
            host_id=key.host_id,
            now=now,
            after=shown,
        )

    async def touch(self, key_id: str) -> None:
        """Record that the key is used, at most once a minute for all instances together."""
        now = self._dialect.now()
        statement = update(api_key_t).where(api_key_t.c.key_id == key_id, self._is_touch_due())

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement.values(last_used_ts=now))

        await self._database.write(Pool.API, work, is_single=True)

    # --- reading ----------------------------------------------------------------------------------

    async def find(self, key_id: str) -> FoundKey | None:
        """Return a key of any host, valid or not. None: there is none."""
        row = (await self._database.fetch(Pool.API, self._by_id, {"key_id": key_id})).one_or_none()
        if row is None:
            return None
        return FoundKey(_record_of(row), row.secret_hash, row.is_live, row.is_touch_due)

    async def page(self, host_id: UUID, *, after: str = "", limit: int = 50) -> list[KeyRecord]:
        """Return a page in order of id, behind `after`, including revoked and expired keys."""
        statement = (
            select(api_key_t)
            .where(api_key_t.c.host_id == host_id, api_key_t.c.key_id > after)
            .order_by(api_key_t.c.key_id)
            .limit(limit)
        )
        return [_record_of(row) for row in await self._database.fetch(Pool.API, statement)]

    async def any_exist(self) -> bool:
        """Whether there is any valid key."""
        async with self._database.read(Pool.API) as connection:
            statement = select(exists().where(is_live(self._dialect)))
            return bool((await connection.execute(statement)).scalar_one())

    def _is_touch_due(self) -> ColumnElement[bool]:
        last = api_key_t.c.last_used_ts
        return or_(last.is_(None), last < self._dialect.plus(self._dialect.now(), -TOUCHED_EVERY_S))


def is_live(dialect: Dialect) -> ColumnElement[bool]:
    """Condition: neither revoked nor expired."""
    expires_ts = api_key_t.c.expires_ts
    return and_(api_key_t.c.revoked_ts.is_(None), or_(expires_ts.is_(None), expires_ts > dialect.now()))


async def _exists(connection: AsyncConnection, key_id: str) -> bool:
    wanted = select(api_key_t.c.key_id).where(api_key_t.c.key_id == key_id)
    return (await connection.execute(wanted)).first() is not None


def _record_of(row: Any) -> KeyRecord:
    return from_row(KeyRecord, row, role=Role(row.role))
