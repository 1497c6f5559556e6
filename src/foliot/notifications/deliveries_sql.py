"""Statements on `notification_t` for senders: claim due messages, and record the result.

A sender claims a message by moving `due_ts` into the future by the length of a lease. If the sender dies, the
message becomes due again, under the same id. `attempts` is the fence: every claim increments it, and settling
requires the same value.

Rules take turns: a claim takes the oldest message of each rule, so a rule with many messages blocks no other.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Uuid,
    and_,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.notifications import notification_rule_t, notification_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.notification import DeliveryState, NotificationType

WAITED_TOO_LONG = "given up: it has waited for too long to be sent"
KNOWN_TYPES = [each.value for each in NotificationType]
"""Types that this version can send. Messages of other types, written by a newer version, are left to it."""
_IS_PENDING = "status = 'pending'"
"""Written exactly as in the partial indexes, so that they are used."""


class DueNotification(NamedTuple):
    """A message that this sender has claimed for the time of a lease."""

    notification_id: UUID
    host_id: UUID
    rule_id: UUID
    type: NotificationType
    message: dict[str, Any]
    attempts: int
    failures: int
    """How often it has failed since it was created, or since somebody last requested a retry."""
    rule: Any
    """The rule's document; None: the rule is deleted."""
    is_held: bool = False
    """Its schedule is paused or deleted, so it is not sent."""


class DeliveryResult(NamedTuple):
    """How an attempt to send ended. `retry_in_s` None: there is no retry."""

    due: DueNotification
    status: DeliveryState
    error: str | None = None
    retry_in_s: float | None = None


class GivenUp(NamedTuple):
    """A message that no sender has sent in time."""

    notification_id: UUID
    type: str
    attempts: int


class Deliveries(Statements):
    async def claim(
        self,
        *,
        limit: int,
        lease_s: float,
        but_rules: Collection[UUID] = (),
        but_hosts: Collection[UUID] = (),
    ) -> list[DueNotification]:
        """Claim the oldest due message of each rule, except rules in `but_rules` and hosts in `but_hosts`.

        No other sender gets a claimed message. If nothing is due, this costs one index lookup.
        """
        due = select(notification_t.c.due_ts).where(text(_IS_PENDING), self._is_due()).limit(1)
        async with self._database.read(Pool.WORK) as connection:
            if (await connection.execute(due)).first() is None:
                return []
        turns, rule = _rules_in_turn(), notification_rule_t
        busy_rules = self._dialect.rows("busy_rules", {"rule_id": Uuid()}, [(each,) for each in but_rules])
        busy_hosts = self._dialect.rows("busy_hosts", {"host_id": Uuid()}, [(each,) for each in but_hosts])
        free = (
            select(turns.c.rule_id, literal(0, Integer).label("turn"))
            .select_from(turns.outerjoin(rule, rule.c.rule_id == turns.c.rule_id))
            .where(
                turns.c.rule_id.is_not(None),
                turns.c.rule_id.not_in(select(busy_rules.c.rule_id)),
                or_(rule.c.host_id.is_(None), rule.c.host_id.not_in(select(busy_hosts.c.host_id))),
            )
            .subquery("free")
        )
        return await self._take(free, limit, lease_s)

    async def claim_of(
        self, rule_ids: Sequence[UUID], *, limit: int, lease_s: float
    ) -> list[DueNotification]:
        """Claim the oldest due message of each of these rules, in this order."""
        if not rule_ids:
            return []
        turns = self._dialect.rows(
            "free",
            {"rule_id": Uuid(), "turn": Integer()},
            [(each, turn) for turn, each in enumerate(rule_ids)],
        )
        return await self._take(turns, limit, lease_s)

    @transaction(Pool.WORK)
    async def _take(
        self, connection: AsyncConnection, turns: FromClause, limit: int, lease_s: float
    ) -> list[DueNotification]:
        table = notification_t
        first = (
            select(table.c.notification_id, table.c.due_ts)
            .where(
                table.c.rule_id == turns.c.rule_id,
                text(_IS_PENDING),
                self._is_due(),
                table.c.type.in_(KNOWN_TYPES),
            )
            .order_by(table.c.due_ts)
            .limit(1)
            .with_for_update(skip_locked=True)
            .correlate(turns)
        )
        oldest = self._dialect.of_each(turns, first, table.c.notification_id).add_columns(turns.c.turn)
        found = oldest.cte("oldest")
        picked = (
            select(found.c.notification_id)
            .order_by(found.c.turn, found.c.due_ts)
            .limit(limit)
            .cte("picked")
            # Inlined, the pick may run more than once and claim more than the limit.
            .prefix_with("MATERIALIZED")
        )
        taking = (
            update(table)
            .where(table.c.notification_id.in_(select(picked.c.notification_id)))
            .values(
                attempts=table.c.attempts + 1, due_ts=self._dialect.plus(self._dialect.now(), float(lease_s))
            )
            .returning(table)
        )
        rows = sorted((await connection.execute(taking)).all(), key=lambda row: row.notification_id)
        if not rows:
            return []
        rules = await self._documents(connection, {row.rule_id for row in rows})
        held = await self._held(connection, {row.schedule_id for row in rows} - {None})
        return [_due_of(row, rules.get(row.rule_id), row.schedule_id in held) for row in rows]

    def _is_due(self) -> ColumnElement[bool]:
        return notification_t.c.due_ts <= select(self._dialect.now()).scalar_subquery()

    async def _documents(self, connection: AsyncConnection, rule_ids: set[UUID]) -> dict[UUID, Any]:
        table = notification_rule_t
        wanted = self._dialect.rows("wanted", {"rule_id": Uuid()}, [(each,) for each in sorted(rule_ids)])
        statement = select(table.c.rule_id, table.c.document).where(
            table.c.rule_id.in_(select(wanted.c.rule_id))
        )
        return {row.rule_id: row.document for row in await connection.execute(statement)}

    async def _held(self, connection: AsyncConnection, schedule_ids: set[UUID]) -> set[UUID]:
        """Return which of these schedules are paused or deleted: their messages are not sent."""
        if not schedule_ids:
            return set()
        table, now = schedule_t, self._dialect.now()
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        is_paused = and_(
            table.c.paused, or_(table.c.paused_until_ts.is_(None), table.c.paused_until_ts > now)
        )
        statement = select(table.c.schedule_id).where(
            table.c.schedule_id.in_(select(wanted.c.schedule_id)),
            or_(is_paused, table.c.deleted_ts.is_not(None)),
        )
        return set((await connection.execute(statement)).scalars())

    async def settle(self, delivery: DeliveryResult) -> bool:
        """Record how an attempt ended; return False, and write nothing, if the claim was lost."""
        table = notification_t
        due, now = delivery.due, self._dialect.now()
        has_failed = delivery.status is not DeliveryState.DELIVERED
        values: dict[str, Any] = {
            "status": delivery.status.value,
            "error": delivery.error,
            "failures": table.c.failures + int(has_failed),
            "due_ts": None,
            "ended_ts": now,
        }
        if delivery.retry_in_s is not None:
            values |= {"due_ts": self._dialect.plus(now, float(delivery.retry_in_s)), "ended_ts": None}
        statement = (
            update(table)
            .where(
                table.c.notification_id == due.notification_id,
                table.c.attempts == due.attempts,
                table.c.status == DeliveryState.PENDING.value,
            )
            .values(**values)
        )

        async def work(connection: AsyncConnection) -> bool:
            return (await connection.execute(statement)).rowcount == 1

        return await self._database.write(Pool.WORK, work)

    @transaction(Pool.FIRING)
    async def give_up(self, connection: AsyncConnection, *, before: datetime, limit: int) -> list[GivenUp]:
        """Mark messages as dead that were due before `before` and are not sent, at most `limit`."""
        table = notification_t
        old = (
            select(table.c.notification_id)
            .where(text(_IS_PENDING), table.c.due_ts < before)
            .order_by(table.c.due_ts)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        statement = (
            update(table)
            .where(table.c.notification_id.in_(old.scalar_subquery()))
            .values(
                status=DeliveryState.DEAD.value,
                due_ts=None,
                ended_ts=self._dialect.now(),
                error=WAITED_TOO_LONG,
            )
            .returning(table.c.notification_id, table.c.type, table.c.attempts)
        )
        return [GivenUp(*row) for row in await connection.execute(statement)]


def _rules_in_turn() -> CTE:
    """Select the rules that have pending messages, by one index lookup per rule (a loose index scan).

    The cost does not depend on how many messages a rule has.
    """
    table = notification_t
    one = select(table.c.rule_id).where(text(_IS_PENDING)).order_by(table.c.rule_id).limit(1)
    first = one.where(table.c.rule_id > literal(UUID(int=0), Uuid()))
    turns = select(first.scalar_subquery().label("rule_id")).cte("turns", recursive=True)
    following = one.where(table.c.rule_id > turns.c.rule_id).correlate(turns)
    return turns.union_all(select(following.scalar_subquery()).where(turns.c.rule_id.is_not(None)))


def _due_of(row: Any, rule: Any, is_held: bool) -> DueNotification:
    return DueNotification(
        row.notification_id,
        row.host_id,
        row.rule_id,
        NotificationType(row.type),
        row.message,
        row.attempts,
        row.failures,
        rule,
        is_held,
    )
