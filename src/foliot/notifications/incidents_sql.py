"""Statements on `notification_incident_t`: detected problems, and the notifications they cause.

One fenced transaction writes the messages, the incidents, and the position up to which failures were read. A
closed incident is kept for a while: failures that are read again, and were part of it, must not reopen it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, String, Uuid, delete, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Columns, Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import cluster_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.notifications import notification_incident_t, notification_t
from foliot.db.tables.schedules import schedule_status_t, schedule_t
from foliot.db.types import Instant
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import ids_at
from foliot.model.incident import FAILING, Incident, IncidentKey, IncidentKind, Notice
from foliot.model.instant import instant_of, micros_of
from foliot.model.lease import Lease
from foliot.notifications.missed_runs_sql import SearchStart, first_successes
from foliot.notifications.notifications_sql import notification_row
from foliot.notifications.observed_rows import (
    ObservedExecution,
    seen_of,
    select_seen,
    wanted_executions,
    wanted_schedules,
)
from foliot.scheduler.leases.leases_sql import require_lease

POSITION = "notified_until"
"""The row of `cluster_t` with the position up to which failures were read, in microseconds."""
ROWS_AT_ONCE = 1000
"""A message has ten values; a statement takes 32,767."""


class Decisions(NamedTuple):
    """Changes to write in one transaction."""

    notices: Sequence[Notice] = ()
    opened: Sequence[Incident] = ()
    closed: Mapping[IncidentKey, datetime] = {}


class Incidents(Statements):
    async def position(self) -> datetime | None:
        """Return the time up to which failures were read. None: never."""
        statement = select(cluster_t.c.value).where(cluster_t.c.name == POSITION)
        micros: int | None = (await self._database.fetch(Pool.FIRING, statement)).scalar_one_or_none()
        return None if micros is None else instant_of(micros)

    async def of_schedules(
        self, schedule_ids: Collection[UUID], kinds: Collection[IncidentKind] = tuple(IncidentKind)
    ) -> list[Incident]:
        """Return open incidents, and closed ones that are still stored."""
        if not schedule_ids:
            return []
        table, wanted = notification_incident_t, wanted_schedules(self._dialect, schedule_ids)
        statement = select(table).where(
            table.c.schedule_id.in_(select(wanted.c.schedule_id)),
            # Needed even for all kinds: a newer version may have written kinds that this one does not know.
            table.c.kind.in_([each.value for each in kinds]),
        )
        return [_incident_of(row) for row in await self._database.fetch(Pool.FIRING, statement)]

    async def over(
        self, now: datetime, *, since: datetime, limit: int
    ) -> list[tuple[Incident, ObservedExecution]]:
        """Return open incidents whose schedule has succeeded after they opened, each with that run.

        Usually that run is the schedule's last one. A last run may also prove nothing: it was cancelled,
        belongs to a backfill, or will be retried. If it did not end before `since`, an earlier success is
        searched.
        """
        last = execution_t
        is_backfill = last.c.triggered_by == TriggeredBy.BACKFILL.value
        ended = (
            _open_with_last()
            .where(
                schedule_status_t.c.last_status == Status.SUCCESS.value,
                ~is_backfill,
                last.c.ended_ts > notification_incident_t.c.opened_ts,
                last.c.ended_ts <= now,
                _ends_lateness(),
            )
            .limit(limit)
        )
        telling = [Status.SUCCESS.value, *(each.value for each in FAILING)]
        hidden = (
            _open_with_last()
            .where(
                or_(is_backfill, schedule_status_t.c.last_status.not_in(telling)),
                or_(last.c.ended_ts.is_(None), last.c.ended_ts >= since),
            )
            .limit(limit)
        )
        async with self._database.read(Pool.FIRING) as connection:
            rows = (await connection.execute(ended)).all()
            found = [(_incident_of(row), seen_of(row, now)) for row in rows]
            doubtful = [_incident_of(row) for row in await connection.execute(hidden)]
            return found + await self._ended_before(connection, doubtful, since, now)

    async def _ended_before(
        self, connection: AsyncConnection, incidents: Sequence[Incident], since: datetime, now: datetime
    ) -> list[tuple[Incident, ObservedExecution]]:
        """Return the incidents that were ended by a success other than the last run."""
        asked = {
            each.key: SearchStart(each.key.schedule_id, max(each.opened_ts, since)) for each in incidents
        }
        if not asked:
            return []
        successes = await first_successes(connection, self._dialect, set(asked.values()), now)
        if not successes:
            return []
        statement = wanted_executions(self._dialect, {each.execution_id for each in successes.values()})
        seen = {row.execution_id: seen_of(row, now) for row in await connection.execute(statement)}
        found = []
        for incident in incidents:
            success = successes.get(asked[incident.key])
            if success is None or success.ended_ts <= incident.opened_ts or success.execution_id not in seen:
                continue
            run = seen[success.execution_id]
            if incident.key.kind is not IncidentKind.SLA_MISS or not run.run.was_late:
                found.append((incident, run))
        return found

    async def abandoned(self, *, limit: int) -> list[Incident]:
        """Return open incidents of deleted schedules."""
        table = notification_incident_t
        statement = (
            select(table)
            .outerjoin(schedule_t, schedule_t.c.schedule_id == table.c.schedule_id)
            .where(
                table.c.closed_ts.is_(None),
                table.c.kind.in_(_KINDS),
                or_(schedule_t.c.schedule_id.is_(None), schedule_t.c.deleted_ts.is_not(None)),
            )
            .limit(limit)
        )
        return [_incident_of(row) for row in await self._database.fetch(Pool.FIRING, statement)]

    # --- deciding --------------------------------------------------------------------------------------

    @transaction(Pool.FIRING)
    async def decide(
        self,
        connection: AsyncConnection,
        lease: Lease,
        decisions: Decisions,
        position: datetime,
        now: datetime,
    ) -> list[str]:
        """Write all of it or nothing. Return the keys of the new messages. Raises FencedError."""
        await require_lease(connection, lease)
        made = await self._notify(connection, decisions.notices, now)
        await self._open(connection, decisions.opened)
        await self._close(connection, decisions.closed)
        statement = self._dialect.insert(cluster_t).values(name=POSITION, value=micros_of(position))
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=[cluster_t.c.name], set_={"value": statement.excluded.value}
            )
        )
        return made

    async def _notify(
        self, connection: AsyncConnection, notices: Sequence[Notice], now: datetime
    ) -> list[str]:
        if not notices:
            return []
        new_id, table = ids_at(now), notification_t
        rows = [
            notification_row(
                new_id(),
                each.host_id,
                each.rule_id,
                each.schedule_id,
                each.type,
                each.dedupe_key,
                dict(each.data),
                now,
            )
            for each in notices
        ]
        made: list[str] = []
        for some in _parts(rows):
            insert = self._dialect.insert(table).values(some)
            insert = insert.on_conflict_do_nothing(index_elements=[table.c.dedupe_key])
            made += (await connection.execute(insert.returning(table.c.dedupe_key))).scalars()
        return made

    async def _open(self, connection: AsyncConnection, opened: Sequence[Incident]) -> None:
        table = notification_incident_t
        for some in _parts([{**each.key._asdict(), **_times_of(each)} for each in opened]):
            statement = self._dialect.insert(table).values(some)
            times = {name: statement.excluded[name] for name in ("opened_ts", "closed_ts")}
            keys = [table.c.schedule_id, table.c.rule_id, table.c.kind]
            await connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=times))

    async def _close(self, connection: AsyncConnection, closed: Mapping[IncidentKey, datetime]) -> None:
        if not closed:
            return
        table = notification_incident_t
        columns: Columns = {
            "schedule_id": Uuid(),
            "rule_id": Uuid(),
            "kind": String(),
            "closed_ts": Instant(),
        }
        gone = self._dialect.rows(
            "gone", columns, [(*key[:2], key.kind.value, at) for key, at in closed.items()]
        )
        await connection.execute(
            update(table)
            .where(
                table.c.schedule_id == gone.c.schedule_id,
                table.c.rule_id == gone.c.rule_id,
                table.c.kind == gone.c.kind,
            )
            .values(closed_ts=gone.c.closed_ts)
        )

    @transaction(Pool.FIRING)
    async def prune(self, connection: AsyncConnection, *, before: datetime, limit: int) -> int:
        """Delete up to `limit` incidents that were closed before this. Return how many."""
        table = notification_incident_t
        key = table.c.schedule_id, table.c.rule_id, table.c.kind
        old = select(*key).where(table.c.closed_ts < before).order_by(table.c.closed_ts).limit(limit)
        return (await connection.execute(delete(table).where(tuple_(*key).in_(old)))).rowcount


_KINDS = [each.value for each in IncidentKind]


def _open_with_last() -> Select[Any]:
    """Select open incidents, each with its schedule and the schedule's last run."""
    table, status = notification_incident_t, schedule_status_t
    return (
        select_seen(table.c.rule_id, table.c.kind, table.c.opened_ts, table.c.closed_ts)
        .select_from(
            table.join(status, status.c.schedule_id == table.c.schedule_id)
            .join(execution_t, execution_t.c.execution_id == status.c.last_execution_id)
            .join(schedule_t, schedule_t.c.schedule_id == table.c.schedule_id)
        )
        .where(table.c.closed_ts.is_(None), table.c.kind.in_(_KINDS))
        .order_by(table.c.schedule_id, table.c.rule_id, table.c.kind)
    )


def _ends_lateness() -> ColumnElement[bool]:
    """Condition: only a run that started in time ends an incident of lateness."""
    return or_(
        notification_incident_t.c.kind != IncidentKind.SLA_MISS.value,
        execution_t.c.due_by_ts.is_(None),
        execution_t.c.started_ts <= execution_t.c.due_by_ts,
    )


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    return (rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE))


def _times_of(incident: Incident) -> dict[str, Any]:
    return {
        "host_id": incident.host_id,
        "opened_ts": incident.opened_ts,
        "closed_ts": incident.closed_ts,
    }


def _incident_of(row: Any) -> Incident:
    key = IncidentKey(row.schedule_id, row.rule_id, IncidentKind(row.kind))
    return Incident(key, row.host_id, row.opened_ts, row.closed_ts)
