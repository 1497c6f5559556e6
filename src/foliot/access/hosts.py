"""Statements on `host_t`: the tenants. Hosts are never deleted, so that an id is never reused."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.access import host_t
from foliot.model.errors import InvalidError, NameTakenError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.planning.change import Author

MAX_OF_NAME = 126


@dataclass(frozen=True, slots=True)
class HostRecord:
    host_id: UUID
    name: str
    created_ts: datetime


class Hosts(Statements):
    async def create(self, name: str, author: Author, *, host_id: UUID | None = None) -> HostRecord:
        """Create a host. Raises InvalidError, NameTakenError.

        If an earlier try of the same caller has created it under this `host_id`, return that host.
        """
        require_name(name)

        async def work(connection: AsyncConnection) -> HostRecord:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            statement = (
                self._dialect.insert(host_t)
                .values(host_id=host_id or new_id(now), host_name=name, created_ts=now)
                .on_conflict_do_nothing()
                .returning(*host_t.c)
            )
            row = (await connection.execute(statement)).one_or_none()
            if row is None:
                return await self._made_before(connection, host_id, name)
            made = _record_of(row)
            await record_audit(
                connection,
                self._dialect,
                author,
                Action.HOST_CREATED,
                made.host_id,
                host_id=DEFAULT_HOST_ID,
                now=now,
                after={"name": name},
            )
            return made

        return await self._database.write(Pool.API, work)

    async def _made_before(self, connection: AsyncConnection, host_id: UUID | None, name: str) -> HostRecord:
        wanted = select(host_t).where(host_t.c.host_id == host_id, host_t.c.host_name == name)
        row = None if host_id is None else (await connection.execute(wanted)).one_or_none()
        if row is None:
            raise NameTakenError(name, what="host")
        return _record_of(row)

    async def get(self, host_id: UUID) -> HostRecord:
        """Return a host. Raises NotFoundError."""
        async with self._database.read(Pool.API) as connection:
            statement = select(host_t).where(host_t.c.host_id == host_id)
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFoundError("host", host_id)
        return _record_of(row)

    async def exists(self, host_id: UUID) -> bool:
        return bool((await self._database.fetch(Pool.API, select(_exists(host_id)))).scalar_one())

    async def page(self, *, after_name: str = "", limit: int = 50) -> list[HostRecord]:
        """Return a page in order of name. `after_name` is the last name of the previous page."""
        statement = (
            select(host_t).where(host_t.c.host_name > after_name).order_by(host_t.c.host_name).limit(limit)
        )
        return [_record_of(row) for row in await self._database.fetch(Pool.API, statement)]


async def require_host(connection: AsyncConnection, host_id: UUID) -> None:
    """Raise NotFoundError if the host does not exist. Hosts are never deleted, so the check stays valid."""
    if not (await connection.execute(select(_exists(host_id)))).scalar_one():
        raise NotFoundError("host", host_id)


def require_name(name: str) -> None:
    """Raise InvalidError at /name for names that look like another name or that a database can't store."""
    if not 1 <= len(name) <= MAX_OF_NAME:
        raise InvalidError.at("/name", "name_length", f"must have 1 to {MAX_OF_NAME} characters")
    if name != name.strip() or not name.isprintable():
        raise InvalidError.at("/name", "name", "must be printable text without spaces around it")


def _exists(host_id: UUID) -> Any:
    return exists().where(host_t.c.host_id == host_id)


def _record_of(row: Any) -> HostRecord:
    return HostRecord(row.host_id, row.host_name, row.created_ts)
