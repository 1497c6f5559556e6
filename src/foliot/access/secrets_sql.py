"""Statements on `secret_t` and `cluster_key_t`: values that leave the store only to run a target."""

import base64
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.access.cipher import Cipher, UndecipherableError
from foliot.access.secrets import MAX_LENGTH, NAME, UnreadableSecretError
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.access import cluster_key_t, secret_t
from foliot.model.errors import InvalidError, NoSecretKeyError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author

BATCH = 200
CALLBACK = "callback"


class SecretName(NamedTuple):
    """The public data of a secret, without its value."""

    name: str
    updated_ts: datetime


class ReadableSecrets(NamedTuple):
    """How many stored secrets the configured keys can read. Covers all hosts, up to a limit."""

    stored: int
    unreadable: tuple[str, ...] = ()
    """Names of the secrets that no key can decrypt."""
    outdated: int = 0
    """Number of secrets that are encrypted with a key other than the first."""


class Secrets:
    """The encrypted secrets of all hosts. Without a cipher, only their names can be read."""

    def __init__(self, database: Database, cipher: Cipher | None) -> None:
        self._database = database
        self._dialect = database.dialect
        self._cipher = cipher

    async def set(self, host_id: UUID, name: str, value: str, author: Author) -> None:
        """Store a value, or replace the existing one. Raises NoSecretKeyError, InvalidError."""
        _require(name, value)
        now = self._dialect.now()
        changing: dict[str, Any] = {
            "value": self._required_cipher().encrypt(value),
            "updated_by": author.name,
            "updated_ts": now,
        }
        statement = self._dialect.insert(secret_t).values(
            host_id=host_id, name=name, created_ts=now, **changing
        )
        statement = statement.on_conflict_do_update(
            index_elements=[secret_t.c.host_id, secret_t.c.name], set_=changing
        )

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement)
            await self._audit(connection, author, Action.SECRET_SET, name, host_id)

        await self._database.write(Pool.API, work)

    async def delete(self, host_id: UUID, name: str, author: Author) -> None:
        """Delete a secret. Raises NotFoundError."""
        statement = delete(secret_t).where(secret_t.c.host_id == host_id, secret_t.c.name == name)

        async def work(connection: AsyncConnection) -> None:
            if not (await connection.execute(statement)).rowcount:
                raise NotFoundError("secret", name)
            await self._audit(connection, author, Action.SECRET_DELETED, name, host_id)

        await self._database.write(Pool.API, work)

    async def names(self, host_id: UUID, *, limit: int = 500, after_name: str = "") -> list[SecretName]:
        """Return a page in order of name."""
        wanted = (
            select(secret_t.c.name, secret_t.c.updated_ts)
            .where(secret_t.c.host_id == host_id, secret_t.c.name > after_name)
            .order_by(secret_t.c.name)
            .limit(limit)
        )
        return [SecretName(*row) for row in await self._database.fetch(Pool.API, wanted)]

    async def values(self, host_id: UUID, names: Iterable[str]) -> dict[str, str]:
        """Return the values of those names that the host has set. Raises UnreadableSecretError."""
        wanted = select(secret_t.c.name, secret_t.c.value).where(
            secret_t.c.host_id == host_id, secret_t.c.name.in_(sorted(set(names)))
        )
        rows = (await self._database.fetch(Pool.WORK, wanted)).all()
        return {name: self._decrypt(name, token) for name, token in rows}

    async def rotate(self, author: Author) -> int:
        """Encrypt all secrets with the first key. Return how many were changed. Raises UnreadableSecretError.

        Can be interrupted and called again: finished secrets are skipped.
        """
        cipher = self._required_cipher()
        count = 0
        last: Row[UUID, str, str] | None = None
        while True:
            rows = await self._page(last)
            if not rows:
                break
            count += await self._rewrite(cipher, [row for row in rows if not cipher.is_current(row.value)])
            last = rows[-1]

        async def tell(connection: AsyncConnection) -> None:
            await self._audit(connection, author, Action.SECRETS_ROTATED, "all", DEFAULT_HOST_ID)

        await self._database.write(Pool.API, tell)
        return count

    async def standing(self, *, limit: int = 1000) -> ReadableSecrets:
        """Check whether the secrets can be read, without returning any value."""
        wanted = select(secret_t.c.name, secret_t.c.value).limit(limit)
        rows = (await self._database.fetch(Pool.API, wanted)).all()
        unreadable = tuple(sorted(row.name for row in rows if not self._is_readable(row.value)))
        cipher = self._cipher
        outdated = 0 if cipher is None else sum(not cipher.is_current(row.value) for row in rows)
        return ReadableSecrets(len(rows), unreadable, outdated - (len(unreadable) if cipher else 0))

    def _is_readable(self, token: str) -> bool:
        try:
            self._decrypt("", token)
        except UnreadableSecretError:
            return False
        return True

    async def _audit(
        self, connection: AsyncConnection, author: Author, action: Action, name: str, host_id: UUID
    ) -> None:
        await record_audit(connection, self._dialect, author, action, name, host_id=host_id)

    async def _page(self, last: Row[UUID, str, str] | None) -> list[Row[UUID, str, str]]:
        key = (secret_t.c.host_id, secret_t.c.name)
        wanted = select(*key, secret_t.c.value).order_by(*key).limit(BATCH)
        if last is not None:
            same_host = and_(secret_t.c.host_id == last.host_id, secret_t.c.name > last.name)
            wanted = wanted.where(or_(secret_t.c.host_id > last.host_id, same_host))
        return list((await self._database.fetch(Pool.API, wanted)).all())

    async def _rewrite(self, cipher: Cipher, rows: list[Row[UUID, str, str]]) -> int:
        # A secret that was set meanwhile uses the first key already, and its row no longer matches.
        statements = [
            update(secret_t)
            .where(
                secret_t.c.host_id == row.host_id,
                secret_t.c.name == row.name,
                secret_t.c.value == row.value,
            )
            .values(value=cipher.encrypt(self._decrypt(row.name, row.value)))
            for row in rows
        ]

        async def work(connection: AsyncConnection) -> int:
            return sum([(await connection.execute(statement)).rowcount for statement in statements])

        return await self._database.write(Pool.API, work) if statements else 0

    def _decrypt(self, name: str, token: str) -> str:
        if self._cipher is None:
            raise UnreadableSecretError(name)
        try:
            return self._cipher.decrypt(token)
        except UndecipherableError:
            raise UnreadableSecretError(name) from None

    def _required_cipher(self) -> Cipher:
        if self._cipher is None:
            raise NoSecretKeyError
        return self._cipher


def _require(name: str, value: str) -> None:
    if not NAME.match(name):
        hint = "starts with a letter or _, then letters, digits, _ . and -, at most 126"
        raise InvalidError.at("/name", "secret_name", "is not a name of a secret", hint)
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        detail = "must be whole characters, no halves of a pair"
        raise InvalidError.at("/value", "secret_value", detail) from None
    if not 0 < length <= MAX_LENGTH:
        raise InvalidError.at("/value", "secret_value", f"must have 1 to {MAX_LENGTH} bytes")


async def callback_key(database: Database) -> bytes:
    """Return the key for callback tokens. The first caller creates it for all instances."""
    wanted = select(cluster_key_t.c.value).where(cluster_key_t.c.name == CALLBACK)
    made = base64.b64encode(secrets.token_bytes(32)).decode()
    insert = database.dialect.insert(cluster_key_t).values(name=CALLBACK, value=made).on_conflict_do_nothing()

    async def work(connection: AsyncConnection) -> str:
        found = (await connection.execute(wanted)).scalar_one_or_none()
        if found is None:
            await connection.execute(insert)
            # Read again: another instance may have inserted it first.
            found = (await connection.execute(wanted)).scalar_one()
        return str(found)

    return base64.b64decode(await database.write(Pool.API, work))
