"""Statements on `session_t`: browser sessions, and links that sign a browser in.

Using a link deletes its row, in the transaction that creates the session. So if several browsers try at once,
only one finds the row. A crash leaves either a link that is still valid, or a session that nobody has the
token of and that expires.

A session ends with the key that it was made from. An API key ends it when it is revoked or expires. The
operator's session ends when FOLIOT_ADMIN_KEY changes, which only an instance with that key can check (see
`Holder.key_id`).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.access.keys import Purpose, hash_of, session_credential
from foliot.access.keys_sql import is_live
from foliot.access.principal import Role
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.access import api_key_t, session_t
from foliot.planning.change import Author

LINK_LIFETIME_S = 15 * 60.0
SESSION_LIFETIME_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who is signed in, and with which key."""

    host_id: UUID
    key_id: str
    """Id of an API key, or the fingerprint of the operator's key."""
    name: str
    role: Role
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class FoundSession:
    holder: Holder
    credential: str
    """Identifies the session without being a secret."""
    created_ts: datetime
    expires_ts: datetime


class MadeSession(NamedTuple):
    session: FoundSession
    token: str
    """Value for the cookie; never stored."""


class MadeLink(NamedTuple):
    token: str
    """Token for the link's URL; never stored."""
    expires_ts: datetime


class Sessions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        # Built once: it runs for every request, and building it takes longer than running it.
        self._by_hash = select(session_t).where(
            session_t.c.secret_hash == bindparam("secret_hash"), self._holds(Purpose.SESSION)
        )

    async def make_link(
        self, holder: Holder, author: Author | None = None, *, lifetime_s: float = LINK_LIFETIME_S
    ) -> MadeLink:
        """Create a link that signs one browser in, once. With an `author`, this is audited."""
        token = Purpose.LINK.new_token()

        async def work(connection: AsyncConnection) -> FoundSession:
            link = _found_of(await self._insert(connection, Purpose.LINK, token, holder, lifetime_s))
            if author is not None:
                await self._audit(connection, author, Action.SIGN_IN_LINK_CREATED, link)
            return link

        return MadeLink(token, (await self._database.write(Pool.API, work)).expires_ts)

    async def use_link(
        self, token: str, author: Author, *, lifetime_s: float = SESSION_LIFETIME_S
    ) -> MadeSession | None:
        """Create a session from a link. None: the link was used, has expired, or never existed.

        The audit names the link's holder as actor, not the author.
        """
        if not Purpose.LINK.has_token(token):
            return None
        made = Purpose.SESSION.new_token()
        using = (
            delete(session_t)
            .where(session_t.c.secret_hash == hash_of(token), self._holds(Purpose.LINK))
            .returning(*session_t.c)
        )

        async def work(connection: AsyncConnection) -> FoundSession | None:
            row = (await connection.execute(using)).one_or_none()
            if row is None:
                return None
            return await self._begin(connection, made, _holder_of(row), lifetime_s, author)

        session = await self._database.write(Pool.API, work)
        return None if session is None else MadeSession(session, made)

    async def make_session(
        self, holder: Holder, author: Author, *, lifetime_s: float = SESSION_LIFETIME_S
    ) -> MadeSession:
        token = Purpose.SESSION.new_token()

        async def work(connection: AsyncConnection) -> FoundSession:
            return await self._begin(connection, token, holder, lifetime_s, author)

        return MadeSession(await self._database.write(Pool.API, work), token)

    async def find(self, token: str) -> FoundSession | None:
        """Return a session. None: it has ended or never existed.

        For an operator's session the caller must still compare the key.
        """
        if not Purpose.SESSION.has_token(token):
            return None
        row = (
            await self._database.fetch(Pool.API, self._by_hash, {"secret_hash": hash_of(token)})
        ).one_or_none()
        return None if row is None else _found_of(row)

    async def end(self, token: str, author: Author) -> bool:
        """Sign out. False: there was no session to end."""
        if not Purpose.SESSION.has_token(token):
            return False
        ending = (
            delete(session_t)
            .where(session_t.c.secret_hash == hash_of(token), session_t.c.kind == Purpose.SESSION.value)
            .returning(*session_t.c)
        )

        async def work(connection: AsyncConnection) -> bool:
            row = (await connection.execute(ending)).one_or_none()
            if row is not None:
                await self._audit(connection, author, Action.SIGNED_OUT, _found_of(row))
            return row is not None

        return await self._database.write(Pool.API, work)

    async def prune(self, *, limit: int = 1000) -> int:
        """Delete up to `limit` expired sessions and links. Return how many."""
        # A subquery: if the clock were called per row, it could not bound the index scan.
        now = select(self._dialect.now()).scalar_subquery()
        over = (
            select(session_t.c.secret_hash)
            .where(session_t.c.expires_ts <= now)
            .order_by(session_t.c.expires_ts)
            .limit(limit)
        )

        async def work(connection: AsyncConnection) -> int:
            return (
                await connection.execute(delete(session_t).where(session_t.c.secret_hash.in_(over)))
            ).rowcount

        return await self._database.write(Pool.API, work)

    # --- inside a transaction ---------------------------------------------------------------------

    async def _begin(
        self, connection: AsyncConnection, token: str, holder: Holder, lifetime_s: float, author: Author
    ) -> FoundSession:
        row = await self._insert(connection, Purpose.SESSION, token, holder, lifetime_s)
        session = _found_of(row)
        await self._audit(connection, author, Action.SIGNED_IN, session)
        return session

    async def _insert(
        self, connection: AsyncConnection, purpose: Purpose, token: str, holder: Holder, lifetime_s: float
    ) -> Any:
        now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
        statement = insert(session_t).values(
            secret_hash=hash_of(token),
            kind=purpose.value,
            host_id=holder.host_id,
            key_id=holder.key_id,
            name=holder.name,
            role=holder.role.value,
            is_operator=holder.is_operator,
            created_ts=now,
            expires_ts=now + timedelta(seconds=lifetime_s),
        )
        return (await connection.execute(statement.returning(*session_t.c))).one()

    async def _audit(
        self, connection: AsyncConnection, author: Author, action: Action, session: FoundSession
    ) -> None:
        holder = session.holder
        await record_audit(
            connection,
            self._dialect,
            replace(author, name=holder.name, credential=author.credential or session.credential),
            action,
            session.credential,
            host_id=holder.host_id,
            after=None if holder.is_operator else {"key_id": holder.key_id},
        )

    def _holds(self, purpose: Purpose) -> ColumnElement[bool]:
        """Condition: neither the row nor the key it was made from has ended."""
        by_key = exists().where(api_key_t.c.key_id == session_t.c.key_id, is_live(self._dialect))
        return and_(
            session_t.c.kind == purpose.value,
            session_t.c.expires_ts > self._dialect.now(),
            or_(session_t.c.is_operator, by_key),
        )


def _holder_of(row: Any) -> Holder:
    return Holder(
        host_id=row.host_id,
        key_id=row.key_id,
        name=row.name,
        role=Role(row.role),
        is_operator=row.is_operator,
    )


def _found_of(row: Any) -> FoundSession:
    return FoundSession(_holder_of(row), session_credential(row.secret_hash), row.created_ts, row.expires_ts)
