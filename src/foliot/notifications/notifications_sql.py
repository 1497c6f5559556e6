"""Statements on `notification_t` for users: test messages, lists, retries; and pruning.

The statements for sending messages are in `deliveries_sql.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.from_row import from_row
from foliot.db.tables.notifications import notification_rule_t, notification_t
from foliot.model.errors import ConflictError, NotFoundError, Problem
from foliot.model.ids import first_id_at, new_id
from foliot.model.notification import DeliveryState, Notification, NotificationRule, NotificationType
from foliot.notifications.deliveries_sql import KNOWN_TYPES, Deliveries
from foliot.planning.change import Author


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFilter:
    """Which messages to list. All given conditions must hold; of several values, any may match."""

    host_id: UUID
    statuses: Sequence[str] = ()
    types: Sequence[str] = ()
    rule_ids: Sequence[UUID] = ()
    schedule_ids: Sequence[UUID] = ()


class Notifications(Deliveries):
    """All statements on notifications: those for users, and those for sending."""

    async def add_test(
        self, rule: NotificationRule, author: Author, *, notification_id: UUID | None = None
    ) -> Notification:
        """Create a test message. If `notification_id` exists already, return that message."""

        async def work(connection: AsyncConnection) -> UUID:
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            made = notification_id or new_id(now)
            data = {"rule": {"rule_id": str(rule.rule_id), "name": rule.spec.name}}
            row = notification_row(
                made, rule.host_id, rule.rule_id, None, NotificationType.TEST, f"test:{made}", data, now
            )
            insert = self._dialect.insert(notification_t).values(row).on_conflict_do_nothing()
            if (await connection.execute(insert.returning(notification_t.c.notification_id))).all():
                await record_audit(
                    connection,
                    self._dialect,
                    author,
                    Action.NOTIFICATION_RULE_TESTED,
                    rule.rule_id,
                    host_id=rule.host_id,
                    now=now,
                    after={"notification_id": str(made)},
                )
            return made

        return await self.get(await self._database.write(Pool.API, work), rule.host_id)

    async def retry(self, notification_id: UUID, host_id: UUID, author: Author) -> Notification:
        """Send a dead message again, with a new retry budget. Raises NotFoundError, ConflictError."""
        table = notification_t

        async def work(connection: AsyncConnection) -> None:
            statement = (
                select(table.c.status)
                .where(table.c.notification_id == notification_id, table.c.host_id == host_id)
                .with_for_update()
            )
            status = (await connection.execute(statement)).scalar_one_or_none()
            if status is None:
                raise NotFoundError("notification", notification_id)
            if status != DeliveryState.DEAD.value:
                detail = f"is {status}: only one that was given up can be sent again"
                raise ConflictError([Problem("/status", "not_dead", detail)])
            await connection.execute(
                update(table)
                .where(table.c.notification_id == notification_id)
                .values(
                    status=DeliveryState.PENDING.value, due_ts=self._dialect.now(), ended_ts=None, failures=0
                )
            )
            await record_audit(
                connection,
                self._dialect,
                author,
                Action.NOTIFICATION_RETRIED,
                notification_id,
                host_id=host_id,
            )

        await self._database.write(Pool.API, work)
        return await self.get(notification_id, host_id)

    async def get(self, notification_id: UUID, host_id: UUID) -> Notification:
        """Return a message. Raises NotFoundError."""
        table = notification_t
        statement = _listed().where(table.c.notification_id == notification_id, table.c.host_id == host_id)
        row = (await self._database.fetch(Pool.API, statement)).one_or_none()
        if row is None:
            raise NotFoundError("notification", notification_id)
        return _notification_of(row)

    async def page(
        self, wanted: NotificationFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Notification]:
        """Return a page, latest first. `after` is the last message of the previous page."""
        table = notification_t
        statement = _listed().where(table.c.host_id == wanted.host_id)
        if len(set(wanted.statuses)) == 1:
            statement = statement.where(_is_as_indexed(wanted.statuses[0]))
        for column, values in (
            (table.c.status, wanted.statuses),
            (table.c.type, wanted.types),
            (table.c.rule_id, wanted.rule_ids),
            (table.c.schedule_id, wanted.schedule_ids),
        ):
            if values:
                statement = statement.where(column.in_(values))
        if after is not None:
            statement = statement.where(table.c.notification_id < after)
        statement = statement.order_by(table.c.notification_id.desc()).limit(limit)
        return [_notification_of(row) for row in await self._database.fetch(Pool.API, statement)]

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete up to `limit` finished messages older than this. Return how many."""
        table = notification_t
        old = (
            select(table.c.notification_id)
            .where(
                table.c.notification_id < first_id_at(before), table.c.status != DeliveryState.PENDING.value
            )
            .order_by(table.c.notification_id)
            .limit(limit)
        )

        async def work(connection: AsyncConnection) -> int:
            return (await connection.execute(delete(table).where(table.c.notification_id.in_(old)))).rowcount

        return await self._database.write(Pool.FIRING, work)


def notification_row(
    notification_id: UUID,
    host_id: UUID,
    rule_id: UUID,
    schedule_id: UUID | None,
    kind: NotificationType,
    dedupe_key: str,
    data: Any,
    now: datetime,
) -> dict[str, Any]:
    """Return the row of a message that is to be sent at once."""
    timestamp = now.isoformat().replace("+00:00", "Z")
    return {
        "notification_id": notification_id,
        "host_id": host_id,
        "rule_id": rule_id,
        "schedule_id": schedule_id,
        "type": kind.value,
        "dedupe_key": dedupe_key,
        "message": {"type": kind.value, "timestamp": timestamp, "data": data},
        "status": DeliveryState.PENDING.value,
        "due_ts": now,
        "created_ts": now,
    }


def _is_as_indexed(status: str) -> TextClause:
    """The condition with the exact text of the partial indexes."""
    return text(f"notification_t.status = '{DeliveryState(status).value}'")


def _listed() -> Any:
    rule = notification_rule_t
    listed = select(notification_t, rule.c.rule_name)
    return listed.outerjoin(rule, rule.c.rule_id == notification_t.c.rule_id).where(
        notification_t.c.type.in_(KNOWN_TYPES)
    )


def _notification_of(row: Any) -> Notification:
    return from_row(Notification, row, type=NotificationType(row.type), status=DeliveryState(row.status))
