"""Statements on `notification_t`: messages, and how far their delivery has come.

A courier claims by putting `due_ts` off for as long as a lease: if it dies, the message is due again by
itself, under the same id. `attempts` is the fence: it grows with every claim, and settling requires it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, TextClause, Uuid, delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.errors import ConflictError, NotFoundError, Problem
from foliot.model.ids import first_id_at, new_id
from foliot.model.notification import DeliveryState, Notification, NotificationRule, NotificationType
from foliot.planning.change import Author
from foliot.store.audit import Action, record_audit
from foliot.store.database import Database
from foliot.store.dialect import Pool
from foliot.store.schema import notification_rule_t, notification_t


class DueNotification(NamedTuple):
    """A message that is this courier's for the time of its lease."""

    notification_id: UUID
    host_id: UUID
    rule_id: UUID
    type: NotificationType
    message: dict[str, Any]
    attempts: int
    failures: int
    """How often it has failed since it was made, or somebody asked for it again."""
    rule: Any
    """The rule's document; None: it is deleted."""


class Delivery(NamedTuple):
    """How a try ended: with `retry_in_s` it is tried again, else it is over."""

    due: DueNotification
    status: DeliveryState
    error: str | None = None
    retry_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFilter:
    """Which messages to list: those of which everything given holds; of several values any may."""

    host_id: UUID
    statuses: Sequence[str] = ()
    types: Sequence[str] = ()
    rule_ids: Sequence[UUID] = ()
    schedule_ids: Sequence[UUID] = ()


class Notifications:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    # --- couriers ---------------------------------------------------------------------------------

    async def claim(
        self,
        *,
        limit: int,
        lease_s: float,
        but_rules: Collection[UUID] = (),
        but_hosts: Collection[UUID] = (),
    ) -> list[DueNotification]:
        """Messages that are due, each given to one courier only, and none of these rules and hosts. With none
        it is one look at an index."""
        table = notification_t
        is_due: list[ColumnElement[bool] | TextClause] = [
            text("status = 'pending'"),
            table.c.due_ts <= select(self._dialect.now()).scalar_subquery(),
        ]
        for name, busy in (("rule_id", but_rules), ("host_id", but_hosts)):
            if busy:
                given = self._dialect.rows(f"busy_{name}", {name: Uuid()}, [(each,) for each in sorted(busy)])
                is_due.append(table.c[name].not_in(select(given.c[name])))
        async with self._database.read(Pool.WORK) as connection:
            if (await connection.execute(select(table.c.due_ts).where(*is_due).limit(1))).first() is None:
                return []
        picked = (
            select(table.c.notification_id)
            .where(*is_due)
            .order_by(table.c.due_ts)
            .limit(limit)
            .with_for_update(skip_locked=True)
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

        async def work(connection: AsyncConnection) -> list[DueNotification]:
            rows = sorted((await connection.execute(taking)).all(), key=lambda row: row.notification_id)
            rules = await self._documents(connection, {row.rule_id for row in rows})
            return [_due_of(row, rules.get(row.rule_id)) for row in rows]

        return await self._database.write(Pool.WORK, work)

    async def _documents(self, connection: AsyncConnection, rule_ids: set[UUID]) -> dict[UUID, Any]:
        table = notification_rule_t
        wanted = self._dialect.rows("wanted", {"rule_id": Uuid()}, [(each,) for each in sorted(rule_ids)])
        statement = select(table.c.rule_id, table.c.document).where(
            table.c.rule_id.in_(select(wanted.c.rule_id))
        )
        return {row.rule_id: row.document for row in await connection.execute(statement)}

    async def settle(self, delivery: Delivery) -> bool:
        """Write down how a try ended; False: it was no longer this courier's, and nothing is written."""
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

    # --- people -----------------------------------------------------------------------------------

    async def add_test(
        self, rule: NotificationRule, author: Author, *, notification_id: UUID | None = None
    ) -> Notification:
        """A message that says nothing but that it arrives; the id of one that there is gives that one."""

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
        """Send a dead one again, with a fresh budget. Raises NotFoundError, ConflictError."""
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
        """Raises NotFoundError."""
        table = notification_t
        statement = _listed().where(table.c.notification_id == notification_id, table.c.host_id == host_id)
        async with self._database.read(Pool.API) as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFoundError("notification", notification_id)
        return _notification_of(row)

    async def page(
        self, wanted: NotificationFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Notification]:
        """Latest first; `after` is the last one of the page before."""
        table = notification_t
        statement = _listed().where(table.c.host_id == wanted.host_id)
        if set(wanted.statuses) == {DeliveryState.DEAD.value}:
            statement = statement.where(text("status = 'dead'"))  # as its index says it
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
        async with self._database.read(Pool.API) as connection:
            return [_notification_of(row) for row in await connection.execute(statement)]

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Remove what is over and older: how many, at most `limit`."""
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
    """A message that is to be sent at once."""
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


def _due_of(row: Any, rule: Any) -> DueNotification:
    return DueNotification(
        row.notification_id,
        row.host_id,
        row.rule_id,
        NotificationType(row.type),
        row.message,
        row.attempts,
        row.failures,
        rule,
    )


def _listed() -> Any:
    rule = notification_rule_t
    return select(notification_t, rule.c.rule_name).outerjoin(
        rule, rule.c.rule_id == notification_t.c.rule_id
    )


def _notification_of(row: Any) -> Notification:
    return Notification(
        notification_id=row.notification_id,
        host_id=row.host_id,
        rule_id=row.rule_id,
        rule_name=row.rule_name,
        schedule_id=row.schedule_id,
        type=NotificationType(row.type),
        status=DeliveryState(row.status),
        attempts=row.attempts,
        error=row.error,
        due_ts=row.due_ts,
        created_ts=row.created_ts,
        ended_ts=row.ended_ts,
        message=row.message,
    )
