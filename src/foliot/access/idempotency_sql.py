"""Statements on `idempotency_t`: what a request with an Idempotency-Key did, or is doing.

Inserting a row claims it. The row also reserves the id of the resource that the request creates. The holder
of the claim then does one of three things:

    finish       store the answer in the row
    give_back    nothing was done: delete the row, so that the key is free
    let_go       the result is unknown: keep the row, so that the next request takes it over

A process that crashes before that leaves a row without an answer. After `stale_s`, any request with the same
body may take it over, by a compare-and-set on `claimed_ts`. It gets the same reserved id, so it finds what
the crashed process created instead of creating it twice. A process that lost its claim can't write to the row
any more, because every write requires the `claimed_ts` of its own claim.

All times are the store's. A row is valid for KEPT_S; an older one is ignored, pruned or not.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, null, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.statements import Statements
from foliot.db.tables.access import idempotency_t
from foliot.model.instant import EPOCH

KEPT_S = 24 * 3600.0


class KeyedRequest(NamedTuple):
    """A request with an idempotency key. A repetition must have the same body hash."""

    credential: str
    route: str
    key: str
    body_hash: str


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The right to carry out a request."""

    request: KeyedRequest
    resource_id: UUID
    """Reserved id of the resource that the request creates; the same for every later claim."""
    claimed_ts: datetime


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    headers: Mapping[str, str]
    body: str | None
    """None: the body was not stored."""


class Pending(NamedTuple):
    """Another process is carrying out the request."""


class Reused(NamedTuple):
    """The key was used with another body."""


class IdempotencyKeys(Statements):
    async def claim(
        self,
        request: KeyedRequest,
        resource_id: UUID,
        *,
        stale_s: float,
        before_insert: Callable[[], Awaitable[None]] | None = None,
    ) -> KeyClaim | StoredResponse | Pending | Reused:
        """Claim the request, or return why it must not be carried out.

        `resource_id` is reserved, unless an earlier claim of the request has reserved one. `before_insert` is
        called if the key is new, and may raise.
        """
        # Read first: requests that wait or repeat take no lock.
        row = await self._read(request, stale_s)
        if row is None or row.is_expired:
            if before_insert is not None:
                await before_insert()
            return await self._insert(request, resource_id) or Pending()
        if row.body_hash != request.body_hash:
            return Reused()
        if row.status is not None:
            return StoredResponse(row.status, row.headers or {}, row.body)
        if not row.is_stale:
            return Pending()
        return await self._take_over(KeyClaim(request, row.resource_id, row.claimed_ts)) or Pending()

    async def count(self, credential: str, *, limit: int) -> int:
        """Return how many rows a credential has, counted up to `limit`."""
        rows = select(idempotency_t.c.key).where(idempotency_t.c.credential == credential).limit(limit)
        statement = select(func.count()).select_from(rows.subquery())
        return int((await self._database.fetch(Pool.API, statement)).scalar_one())

    async def finish(self, claim: KeyClaim, answer: StoredResponse) -> bool:
        """Store the answer for repeated requests. False: the claim was taken over."""
        statement = (
            update(idempotency_t)
            .where(_is_held_by(claim))
            .values(status=answer.status, headers=dict(answer.headers), body=answer.body)
        )
        return await self._write(statement) == 1

    async def give_back(self, claim: KeyClaim) -> None:
        """Free the key: the request was refused, and may come again with another body."""
        await self._write(delete(idempotency_t).where(_is_held_by(claim)))

    async def let_go(self, claim: KeyClaim) -> None:
        """Let the next repetition of the request take over at once, with the same reserved id."""
        statement = update(idempotency_t).where(_is_held_by(claim)).values(claimed_ts=EPOCH)
        await self._write(statement)

    async def prune(self, *, limit: int) -> int:
        """Delete up to `limit` expired rows. Return how many."""
        key = (idempotency_t.c.credential, idempotency_t.c.route, idempotency_t.c.key)
        # A subquery: if the clock were called per row, it could not bound the index scan.
        expired = select(self._ago(KEPT_S)).scalar_subquery()
        old = (
            select(*key)
            .where(idempotency_t.c.created_ts < expired)
            .order_by(idempotency_t.c.created_ts)
            .limit(limit)
            .with_for_update(skip_locked=True)
            # If inlined, it may run more than once and find more than the limit.
            .cte("old")
            .prefix_with("MATERIALIZED")
        )
        gone = delete(idempotency_t).where(
            tuple_(*key).in_(select(*old.c)),
            # Repeated, because PostgreSQL may otherwise scan the whole table for the join.
            idempotency_t.c.created_ts < expired,
        )

        async def work(connection: AsyncConnection) -> int:
            # SQLite's driver reports no row count for a statement that begins with WITH.
            return len((await connection.execute(gone.returning(idempotency_t.c.created_ts))).all())

        return await self._database.write(Pool.API, work, is_single=True)

    async def _insert(self, request: KeyedRequest, resource_id: UUID) -> KeyClaim | None:
        now = self._dialect.now()
        values: dict[str, Any] = {
            "body_hash": request.body_hash,
            "resource_id": resource_id,
            "claimed_ts": now,
            "created_ts": now,
            "status": null(),
            "headers": null(),
            "body": null(),
        }
        statement = self._dialect.insert(idempotency_t).values(
            credential=request.credential, route=request.route, key=request.key, **values
        )
        claiming = statement.on_conflict_do_update(
            index_elements=[idempotency_t.c.credential, idempotency_t.c.route, idempotency_t.c.key],
            set_={name: statement.excluded[name] for name in values},
            where=idempotency_t.c.created_ts < self._ago(KEPT_S),
        ).returning(idempotency_t.c.resource_id, idempotency_t.c.claimed_ts)

        async def work(connection: AsyncConnection) -> KeyClaim | None:
            row = (await connection.execute(claiming)).one_or_none()
            return None if row is None else KeyClaim(request, row.resource_id, row.claimed_ts)

        return await self._database.write(Pool.API, work, is_single=True)

    async def _read(self, request: KeyedRequest, stale_s: float) -> Any:
        statement = select(
            idempotency_t,
            (idempotency_t.c.claimed_ts <= self._ago(stale_s)).label("is_stale"),
            (idempotency_t.c.created_ts < self._ago(KEPT_S)).label("is_expired"),
        ).where(_is_of(request))
        return (await self._database.fetch(Pool.API, statement)).one_or_none()

    async def _take_over(self, seen: KeyClaim) -> KeyClaim | None:
        statement = (
            update(idempotency_t)
            .where(_is_held_by(seen))
            .values(claimed_ts=self._dialect.now())
            .returning(idempotency_t.c.claimed_ts)
        )

        async def work(connection: AsyncConnection) -> KeyClaim | None:
            claimed_ts = (await connection.execute(statement)).scalar_one_or_none()
            return None if claimed_ts is None else KeyClaim(seen.request, seen.resource_id, claimed_ts)

        return await self._database.write(Pool.API, work, is_single=True)

    async def _write(self, statement: Any) -> int:
        async def work(connection: AsyncConnection) -> int:
            return int((await connection.execute(statement)).rowcount)

        return await self._database.write(Pool.API, work, is_single=True)

    def _ago(self, seconds: float) -> ColumnElement[datetime]:
        return self._dialect.plus(self._dialect.now(), -seconds)


def _is_of(request: KeyedRequest) -> ColumnElement[bool]:
    return and_(
        idempotency_t.c.credential == request.credential,
        idempotency_t.c.route == request.route,
        idempotency_t.c.key == request.key,
    )


def _is_held_by(claim: KeyClaim) -> ColumnElement[bool]:
    return and_(
        _is_of(claim.request),
        idempotency_t.c.resource_id == claim.resource_id,
        idempotency_t.c.claimed_ts == claim.claimed_ts,
        idempotency_t.c.status.is_(None),
    )
