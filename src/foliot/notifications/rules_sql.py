"""Statements on `notification_rule_t`: who is notified of which problems.

As with calendars, every change increments a number in `cluster_t` in its own transaction. So the leader reads
one row to learn that nothing has changed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.from_row import from_row
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import cluster_t
from foliot.db.tables.notifications import notification_incident_t, notification_rule_t, notification_t
from foliot.model.errors import ConflictError, NameTakenError, NotFoundError, Problem, StaleVersionError
from foliot.model.ids import new_id
from foliot.model.notification import NotificationRule, NotificationRuleSpec, OnDidNotRun
from foliot.planning.change import Author

REVISION = "notification_rules"
MAX_RULES = 200
"""Max rules per host, because every failure is checked against all of them."""
FORGOTTEN_AT_ONCE = 1000
WHAT = "notification rule"

Redefine = Callable[[NotificationRule], NotificationRuleSpec]
"""Function from the current rule to its new definition."""


class NotificationRules(Statements):
    # --- changing ---------------------------------------------------------------------------------

    @transaction(Pool.API)
    async def create(
        self,
        connection: AsyncConnection,
        host_id: UUID,
        spec: NotificationRuleSpec,
        author: Author,
        *,
        rule_id: UUID | None = None,
    ) -> NotificationRule:
        """Create a rule. Raises NameTakenError, and ConflictError if the host has too many rules.

        If `rule_id` exists already, return that rule.
        """
        table = notification_rule_t
        if rule_id is not None:
            known = (await connection.execute(_one(rule_id, host_id))).one_or_none()
            if known is not None:
                return _rule_of(known)  # repeated request
        # First, because it locks: transactions that would count at the same time wait.
        await self._raise_revision(connection)
        count = select(func.count()).select_from(table).where(table.c.host_id == host_id)
        if (await connection.execute(count)).scalar_one() >= MAX_RULES:
            detail = f"a host has at most {MAX_RULES} notification rules"
            raise ConflictError([Problem("", "too_many_rules", detail, "delete some, or join them")])
        now = (await connection.execute(select(self._dialect.now()))).scalar_one()
        rule = NotificationRule(
            rule_id=rule_id or new_id(now),
            host_id=host_id,
            spec=spec,
            effective_ts=now,
            created_by=author.name,
            created_ts=now,
            updated_by=author.name,
            updated_ts=now,
        )
        insert = self._dialect.insert(table).values(_row_of(rule))
        insert = insert.on_conflict_do_nothing(index_elements=[table.c.host_id, table.c.rule_name])
        if not (await connection.execute(insert.returning(table.c.rule_id))).all():
            raise NameTakenError(spec.name, what=WHAT)
        await self._audit(
            connection, author, Action.NOTIFICATION_RULE_CREATED, rule, after=spec.model_dump(mode="json")
        )
        return rule

    async def change(
        self,
        rule_id: UUID,
        host_id: UUID,
        redefine: Redefine,
        author: Author,
        *,
        expected_version: int | None = None,
    ) -> NotificationRule:
        """Change a rule under its lock. Raises NotFoundError, StaleVersionError, NameTakenError."""
        table = notification_rule_t

        wanted = ""

        async def work(connection: AsyncConnection) -> NotificationRule:
            nonlocal wanted
            before = await self._locked(connection, rule_id, host_id, expected_version)
            spec = redefine(before)
            wanted = spec.name
            if spec == before.spec:
                return before
            now: datetime = (await connection.execute(select(self._dialect.now()))).scalar_one()
            after = replace(
                before, spec=spec, version=before.version + 1, updated_by=author.name, updated_ts=now
            )
            # counts_from also excludes a past mute, which this change may remove from the definition.
            heard_ts = now if before.is_muted(now) else before.counts_from
            if not after.is_muted(now):
                after = replace(after, effective_ts=heard_ts)
                if before.is_muted(now):
                    await self._begin_anew(connection, rule_id, now)
            if _watched_by(spec) != _watched_by(before.spec):
                after = replace(after, watching_ts=now)
            await connection.execute(update(table).where(table.c.rule_id == rule_id).values(_row_of(after)))
            await self._raise_revision(connection)
            old, new = before.spec.model_dump(mode="json"), spec.model_dump(mode="json")
            differing = [name for name in new if old[name] != new[name]]
            await self._audit(
                connection,
                author,
                Action.NOTIFICATION_RULE_EDITED,
                after,
                before={name: old[name] for name in differing},
                after={name: new[name] for name in differing},
            )
            return after

        try:
            return await self._database.write(Pool.API, work)
        except IntegrityError:
            raise NameTakenError(wanted, what=WHAT) from None

    async def delete(
        self, rule_id: UUID, host_id: UUID, author: Author, *, expected_version: int | None = None
    ) -> None:
        """Delete a rule, its incidents and its unsent messages.

        Incidents and messages are deleted in batches after the rule. A crash in between leaves messages that
        are never sent, and incidents that end by themselves.
        """

        async def work(connection: AsyncConnection) -> None:
            row = await self._locked_row(connection, rule_id, host_id, expected_version)
            await connection.execute(
                delete(notification_rule_t).where(notification_rule_t.c.rule_id == rule_id)
            )
            await self._raise_revision(connection)
            await record_audit(
                connection,
                self._dialect,
                author,
                Action.NOTIFICATION_RULE_DELETED,
                rule_id,
                host_id=host_id,
                before=row.document,
            )

        await self._database.write(Pool.API, work)
        while await self._forget_some(rule_id):
            pass

    @transaction(Pool.API)
    async def _forget_some(self, connection: AsyncConnection, rule_id: UUID) -> bool:
        """Delete a batch of the rule's incidents and unsent messages. Return whether there may be more."""
        incident, message = notification_incident_t, notification_t
        schedules = select(incident.c.schedule_id).where(incident.c.rule_id == rule_id)
        messages = (
            select(message.c.notification_id)
            .where(message.c.rule_id == rule_id, text("status = 'pending'"))
            .limit(FORGOTTEN_AT_ONCE)
        )
        gone = await connection.execute(
            delete(incident).where(
                incident.c.rule_id == rule_id,
                incident.c.schedule_id.in_(schedules.limit(FORGOTTEN_AT_ONCE)),
            )
        )
        unsent = await connection.execute(
            delete(message).where(message.c.notification_id.in_(messages), text("status = 'pending'"))
        )
        return max(gone.rowcount, unsent.rowcount) >= FORGOTTEN_AT_ONCE

    async def _begin_anew(self, connection: AsyncConnection, rule_id: UUID, now: datetime) -> None:
        """Close open incidents of a rule that was muted: nobody has checked meanwhile if they are over."""
        table = notification_incident_t
        await connection.execute(
            update(table).where(table.c.rule_id == rule_id, table.c.closed_ts.is_(None)).values(closed_ts=now)
        )

    async def _locked(
        self, connection: AsyncConnection, rule_id: UUID, host_id: UUID, expected_version: int | None
    ) -> NotificationRule:
        return _rule_of(await self._locked_row(connection, rule_id, host_id, expected_version))

    async def _locked_row(
        self, connection: AsyncConnection, rule_id: UUID, host_id: UUID, expected_version: int | None
    ) -> Any:
        row = (await connection.execute(_one(rule_id, host_id).with_for_update())).one_or_none()
        if row is None:
            raise NotFoundError(WHAT, rule_id)
        if expected_version is not None and row.version != expected_version:
            raise StaleVersionError(rule_id, expected_version, row.version, what=WHAT)
        return row

    async def _raise_revision(self, connection: AsyncConnection) -> None:
        statement = self._dialect.insert(cluster_t).values(name=REVISION, value=1)
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=[cluster_t.c.name], set_={"value": cluster_t.c.value + 1}
            )
        )

    async def _audit(
        self, connection: AsyncConnection, author: Author, action: Action, rule: NotificationRule, **what: Any
    ) -> None:
        await record_audit(
            connection, self._dialect, author, action, rule.rule_id, host_id=rule.host_id, **what
        )

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, rule_id: UUID, host_id: UUID) -> NotificationRule:
        """Return a rule. Raises NotFoundError, and ConflictError if this version can't read it."""
        row = (await self._database.fetch(Pool.API, _one(rule_id, host_id))).one_or_none()
        if row is None:
            raise NotFoundError(WHAT, rule_id)
        return _rule_of(row)

    async def list_all(
        self, host_id: UUID, *, limit: int = 500, after_name: str = ""
    ) -> list[NotificationRule]:
        """Return a page in order of name, without rules that this version can't read."""
        table = notification_rule_t
        statement = (
            select(table)
            .where(table.c.host_id == host_id, table.c.rule_name > after_name)
            .order_by(table.c.rule_name)
            .limit(limit)
        )
        rows = (await self._database.fetch(Pool.API, statement)).all()
        found = []
        for row in rows:
            with suppress(ConflictError):
                found.append(_rule_of(row))
        return found

    async def glance(self) -> tuple[datetime, int]:
        """Return the store's time, and a number that grows with every change of any rule."""
        revision = select(cluster_t.c.value).where(cluster_t.c.name == REVISION).scalar_subquery()
        now, found = (await self._database.fetch(Pool.FIRING, select(self._dialect.now(), revision))).one()
        return now, found or 0

    async def snapshot(self, known: Mapping[UUID, NotificationRule]) -> list[NotificationRule]:
        """Return all rules of all hosts, except those that this version can't read.

        Of the rules in `known`, only changed ones are parsed again: parsing thousands would take as long as a
        heartbeat.
        """
        found = []
        async with self._database.read(Pool.FIRING) as connection:
            for row in await connection.execute(select(notification_rule_t)):
                rule = known.get(row.rule_id)
                if rule is None or (rule.version, rule.effective_ts) != (row.version, row.effective_ts):
                    with suppress(ConflictError):
                        found.append(_rule_of(row))
                else:
                    found.append(rule)
        return found


def _one(rule_id: UUID, host_id: UUID) -> Any:
    table = notification_rule_t
    return select(table).where(table.c.rule_id == rule_id, table.c.host_id == host_id)


def _row_of(rule: NotificationRule) -> dict[str, Any]:
    return {
        "rule_id": rule.rule_id,
        "host_id": rule.host_id,
        "rule_name": rule.spec.name,
        "document": rule.spec.model_dump(mode="json"),
        "version": rule.version,
        "effective_ts": rule.effective_ts,
        "watching_ts": rule.watching_ts,
        "created_by": rule.created_by,
        "created_ts": rule.created_ts,
        "updated_by": rule.updated_by,
        "updated_ts": rule.updated_ts,
    }


def _watched_by(spec: NotificationRuleSpec) -> tuple[Any, ...]:
    """The part of a definition that determines which schedules are watched for missing runs, and how."""
    return spec.match, [each for each in spec.on if isinstance(each, OnDidNotRun)]


def _rule_of(row: Any) -> NotificationRule:
    """Parse a rule, ignoring fields that only newer versions know.

    Raises ConflictError if it can't be read.
    """
    try:
        spec = NotificationRuleSpec.model_validate(row.document, extra="ignore")
    except ValidationError:
        detail = "was written by another version, and can't be understood by this one"
        raise ConflictError([Problem("", "unreadable_rule", detail, "delete it, or upgrade")]) from None
    return from_row(NotificationRule, row, spec=spec)
