"""Statements on `session_t`: browsers that are signed in, and links that sign one in.

A link is used by deleting its row, in the transaction that makes the session: of any number who try at once,
one finds the row. What a crash leaves behind is a link that is still good, or a session that nobody knows and
that runs out.

A session ends with what it was made from: with its API key, when that is revoked or expires; the operator's
when FOLIOT_ADMIN_KEY becomes another, which only those who have the key can tell (see `FoundSession.key_id`).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.planning.change import Author
from foliot.security.keys import Purpose, hash_of, session_credential
from foliot.security.principal import Role
from foliot.store.audit import Action, record_audit
from foliot.store.database import Database
from foliot.store.dialect import Pool
from foliot.store.keys import is_live
from foliot.store.schema import api_key_t, session_t

LINK_LIFETIME_S = 15 * 60.0
SESSION_LIFETIME_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who is signed in, and by which key."""

    host_id: UUID
    key_id: str
    """Of an API key; or the fingerprint of the operator's."""
    name: str
    role: Role
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class FoundSession:
    holder: Holder
    credential: str
    """Names the session, without being one."""
    created_ts: datetime
    expires_ts: datetime


class MadeSession(NamedTuple):
    session: FoundSession
    token: str
    """For the cookie; never stored."""


class MadeLink(NamedTuple):
    token: str
    """For the link's address; never stored."""
    expires_ts: datetime


class Sessions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        # Built once: it is run for every request, and building it takes longer than running it.
        self._by_hash = select(session_t).where(
            session_t.c.secret_hash == bindparam("secret_hash"), self._holds(Purpose.SESSION)
        )

    async def make_link(
        self, holder: Holder, author: Author | None = None, *, lifetime_s: float = LINK_LIFETIME_S
    ) -> MadeLink:
        """A token that signs one browser in, once. Audited if somebody asked for it."""
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
        """A session for whoever comes first; None if the link was used, has run out, or never was one.

        In the audit the actor is the link's holder, whatever the author is called.
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
        """None if it is over, or never was one; an operator's still has to be of the present key."""
        if not Purpose.SESSION.has_token(token):
            return None
        async with self._database.read(Pool.API) as connection:
            row = (await connection.execute(self._by_hash, {"secret_hash": hash_of(token)})).one_or_none()
        return None if row is None else _found_of(row)

    async def end(self, token: str, author: Author) -> bool:
        """Sign out; False if there was nothing to end."""
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
        """Remove sessions and links that have run out: how many, at most `limit`."""
        # A query of its own: called for every row, the clock would be no bound of the index.
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
        """Not run out, and neither has the key it was made from."""
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
