"""Statements on `audit_t`: who did what.

An entry is written in the transaction of its change, so neither exists without the other. Values of secrets
are never written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.combined_inserts import Write, row_of_values
from foliot.db.dialect import Dialect, Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.access import audit_t
from foliot.db.types import storable
from foliot.model.ids import first_id_at, new_id
from foliot.planning.change import Author


class Action(StrEnum):
    """What was done, as `resource.verb`."""

    SCHEDULE_CREATED = "schedule.created"
    SCHEDULE_EDITED = "schedule.edited"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_RESUMED = "schedule.resumed"
    SCHEDULE_DELETED = "schedule.deleted"
    SCHEDULE_TRIGGERED = "schedule.triggered"
    BACKFILL_CREATED = "backfill.created"
    BACKFILL_CANCELLED = "backfill.cancelled"
    EXECUTION_CANCELLED = "execution.cancelled"
    EXECUTION_RETRIED = "execution.retried"
    QUEUE_PAUSED = "queue.paused"
    QUEUE_RESUMED = "queue.resumed"
    CALENDAR_SET = "calendar.set"
    CALENDAR_DELETED = "calendar.deleted"
    SECRET_SET = "secret.set"  # noqa: S105 - a word for what was done
    SECRET_DELETED = "secret.deleted"  # noqa: S105
    SECRETS_ROTATED = "secret.rotated"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    HOST_CREATED = "host.created"
    NOTIFICATION_RULE_CREATED = "notification_rule.created"
    NOTIFICATION_RULE_EDITED = "notification_rule.edited"
    NOTIFICATION_RULE_DELETED = "notification_rule.deleted"
    NOTIFICATION_RULE_TESTED = "notification_rule.tested"
    NOTIFICATION_RETRIED = "notification.retried"
    TASK_FUNCTION_CHANGED = "task_function.changed"
    INSTANCE_DRAINED = "instance.drained"
    INSTANCE_RESUMED = "instance.resumed"
    CLUSTER_RESHARDED = "cluster.resharded"
    SIGN_IN_LINK_CREATED = "session.link_created"
    EVENT_GROUP_DELETED = "event_group.deleted"
    EVENT_RELAY_DELETED = "event_relay.deleted"
    EVENT_RELAY_TOPIC_DELETED = "event_relay.topic_deleted"
    DEAD_LETTER_REPLAYED = "dead_letter.replayed"
    DEAD_LETTER_DELETED = "dead_letter.deleted"
    SIGNED_IN = "session.created"
    SIGNED_OUT = "session.ended"

    @property
    def resource_type(self) -> str:
        return self.value.partition(".")[0]


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One audit entry, as read from the database."""

    audit_id: UUID
    host_id: UUID
    audit_ts: datetime
    actor: str | None
    credential: str | None
    action: str
    resource_type: str
    resource_id: str
    before: Any
    after: Any
    reason: str | None
    request_id: str | None
    address: str | None


async def record_audit(
    connection: AsyncConnection,
    dialect: Dialect,
    author: Author,
    action: Action,
    resource_id: object,
    *,
    host_id: UUID,
    now: datetime | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write an audit entry in this transaction. `before` and `after` need only the values that differ."""
    if now is None:
        now = (await connection.execute(select(dialect.now()))).scalar_one()
    write = audit_write(
        dialect, author, action, resource_id, host_id=host_id, now=now, before=before, after=after
    )
    await connection.execute(write.statement, write.values)


def audit_write(
    dialect: Dialect,
    author: Author,
    action: Action,
    resource_id: object,
    *,
    host_id: UUID,
    now: datetime,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Write:
    """Build an audit entry, to be written together with other rows."""
    return row_of_values(
        dialect,
        audit_t,
        {
            "audit_id": new_id(now),
            "host_id": host_id,
            "audit_ts": now,
            "actor": author.name,
            "credential": author.credential,
            "action": action.value,
            "resource_type": action.resource_type,
            "resource_id": str(resource_id),
            "before": None if before is None else dict(before),
            "after": None if after is None else dict(after),
            "reason": author.reason and storable(author.reason),
            "request_id": author.request_id,
            "address": author.address,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which records to list. All given fields must match; a field with several values matches any of them."""

    host_id: UUID
    actions: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    resource_types: tuple[str, ...] = ()
    resource_ids: tuple[str, ...] = ()
    from_ts: datetime | None = None
    to_ts: datetime | None = None


class Audit(Statements):
    @transaction(Pool.API)
    async def prune(self, connection: AsyncConnection, *, older_than_s: float, limit: int) -> int:
        """Delete entries older than `older_than_s` seconds, at most `limit`; return how many."""
        oldest = self._dialect.plus(self._dialect.now(), -older_than_s)
        before: datetime = (await connection.execute(select(oldest))).scalar_one()
        # The id begins with the time, so the oldest are a range of the primary key.
        old = (
            select(audit_t.c.audit_id)
            .where(audit_t.c.audit_id < first_id_at(before))
            .order_by(audit_t.c.audit_id)
            .limit(limit)
        )
        result = await connection.execute(delete(audit_t).where(audit_t.c.audit_id.in_(old)))
        return result.rowcount

    async def page(
        self, wanted: AuditFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[AuditRecord]:
        """Return a page of records, latest first. `after`: id of the last record of the page before."""
        table = audit_t
        statement = select(table).where(table.c.host_id == wanted.host_id)
        for column, values in (
            (table.c.action, wanted.actions),
            (table.c.actor, wanted.actors),
            (table.c.resource_type, wanted.resource_types),
            (table.c.resource_id, wanted.resource_ids),
        ):
            if values:
                statement = statement.where(column.in_(values))
        if wanted.from_ts is not None:
            statement = statement.where(table.c.audit_ts >= wanted.from_ts)
        if wanted.to_ts is not None:
            statement = statement.where(table.c.audit_ts < wanted.to_ts)
        if after is not None:
            statement = statement.where(table.c.audit_id < after)
        statement = statement.order_by(table.c.audit_id.desc()).limit(limit)
        return [AuditRecord(**row._mapping) for row in await self._database.fetch(Pool.API, statement)]
