"""Statements on `calendar_t`: named sets of excluded days.

Every change increments a revision number in `cluster_t`, in the same transaction. So a leader reads one row
to learn that nothing has changed. A timestamp would not do: a transaction may commit after another that began
later, so of two concurrent changes one could be missed.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.from_row import from_row
from foliot.db.statements import Statements
from foliot.db.tables.cluster import cluster_t
from foliot.db.tables.schedules import calendar_t, schedule_t
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import CalendarInUseError, NameTakenError, NotFoundError
from foliot.model.ids import new_id
from foliot.planning.change import Author
from foliot.timing.calendar import compile_calendar

REVISION = "calendars"
PAGE = 1000
MAX_NAMED = 5
"""How many of the schedules that use a calendar are named when it can't be deleted."""


@dataclass(frozen=True, slots=True)
class CalendarRecord:
    calendar_id: UUID
    host_id: UUID
    spec: CalendarSpec
    updated_by: str | None
    created_ts: datetime
    updated_ts: datetime


class Calendars(Statements):
    # --- changing ---------------------------------------------------------------------------------

    async def put(
        self,
        host_id: UUID,
        spec: CalendarSpec,
        author: Author,
        *,
        replaces: bool = True,
        calendar_id: UUID | None = None,
    ) -> CalendarRecord:
        """Create the calendar, or replace the one with that name. Raises InvalidError.

        With `replaces` False, raises NameTakenError instead of replacing. If `calendar_id` exists already,
        return that calendar.
        """
        compile_calendar(spec)

        async def work(connection: AsyncConnection) -> CalendarRecord:
            if calendar_id is not None:
                made = select(calendar_t).where(calendar_t.c.calendar_id == calendar_id)
                known = (await connection.execute(made)).one_or_none()
                if known is not None:
                    return _record_of(known)  # a repeated request, whose first reply was lost
            now = (await connection.execute(select(self._dialect.now()))).scalar_one()
            values: dict[str, Any] = {
                "description": spec.description,
                "document": spec.model_dump(mode="json"),
                "updated_by": author.name,
                "updated_ts": now,
            }
            statement = self._dialect.insert(calendar_t).values(
                calendar_id=calendar_id or new_id(now),
                host_id=host_id,
                calendar_name=spec.name,
                created_ts=now,
                **values,
            )
            name = [calendar_t.c.host_id, calendar_t.c.calendar_name]
            upsert = (
                statement.on_conflict_do_update(index_elements=name, set_=values)
                if replaces
                else statement.on_conflict_do_nothing(index_elements=name)
            )
            row = (await connection.execute(upsert.returning(*calendar_t.c))).one_or_none()
            if row is None:
                raise NameTakenError(spec.name, what="calendar")
            await self._raise_revision(connection)
            await record_audit(
                connection,
                self._dialect,
                author,
                Action.CALENDAR_SET,
                spec.name,
                host_id=host_id,
                now=now,
                after=_summary(spec),
            )
            return _record_of(row)

        return await self._database.write(Pool.API, work)

    async def delete(self, host_id: UUID, name: str, author: Author) -> None:
        """Delete a calendar. Raises NotFoundError, and CalendarInUseError while a schedule uses it."""
        # Checked before the transaction, since it may take long if many schedules have calendars. A schedule
        # that starts to use this calendar in between is parked when it is due, with the reason.
        users = await self._users(host_id, name)
        if users:
            raise CalendarInUseError(name, users)

        async def work(connection: AsyncConnection) -> None:
            result = await connection.execute(
                delete(calendar_t).where(calendar_t.c.host_id == host_id, calendar_t.c.calendar_name == name)
            )
            if not result.rowcount:
                raise NotFoundError("calendar", name)
            await self._raise_revision(connection)
            await record_audit(
                connection, self._dialect, author, Action.CALENDAR_DELETED, name, host_id=host_id
            )

        await self._database.write(Pool.API, work)

    async def _users(self, host_id: UUID, name: str) -> list[str]:
        """Return the names of the first few schedules that use the calendar, sorted."""
        calendars = schedule_t.c.policies["calendars"]
        statement = (
            select(schedule_t.c.schedule_name, calendars.label("calendars"))
            .where(schedule_t.c.host_id == host_id, schedule_t.c.deleted_ts.is_(None), calendars != [])
            .order_by(schedule_t.c.schedule_name)
            .limit(PAGE)
        )
        found: list[str] = []
        after_name = ""
        async with self._database.read(Pool.API) as connection:
            while len(found) < MAX_NAMED:
                page = (
                    await connection.execute(statement.where(schedule_t.c.schedule_name > after_name))
                ).all()
                found += [row.schedule_name for row in page if name in row.calendars]
                if len(page) < PAGE:
                    break
                after_name = page[-1].schedule_name
        return found[:MAX_NAMED]

    async def _raise_revision(self, connection: AsyncConnection) -> None:
        statement = self._dialect.insert(cluster_t).values(name=REVISION, value=1)
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=[cluster_t.c.name], set_={"value": cluster_t.c.value + 1}
            )
        )

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, host_id: UUID, name: str) -> CalendarRecord:
        """Return a calendar. Raises NotFoundError."""
        async with self._database.read(Pool.API) as connection:
            statement = select(calendar_t).where(
                calendar_t.c.host_id == host_id, calendar_t.c.calendar_name == name
            )
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFoundError("calendar", name)
        return _record_of(row)

    async def list_all(
        self, host_id: UUID, *, limit: int = 500, after_name: str = ""
    ) -> list[CalendarRecord]:
        async with self._database.read(Pool.API) as connection:
            statement = (
                select(calendar_t)
                .where(calendar_t.c.host_id == host_id, calendar_t.c.calendar_name > after_name)
                .order_by(calendar_t.c.calendar_name)
                .limit(limit)
            )
            return [_record_of(row) for row in await connection.execute(statement)]

    async def names(self, host_id: UUID) -> frozenset[str]:
        async with self._database.read(Pool.API) as connection:
            statement = select(calendar_t.c.calendar_name).where(calendar_t.c.host_id == host_id)
            return frozenset((await connection.execute(statement)).scalars())

    async def revision(self) -> int:
        """Return a number that grows with every change of any calendar."""
        async with self._database.read(Pool.FIRING) as connection:
            statement = select(cluster_t.c.value).where(cluster_t.c.name == REVISION)
            return (await connection.execute(statement)).scalar_one_or_none() or 0

    async def snapshot(self) -> dict[tuple[UUID, str], CalendarSpec]:
        """Return all calendars by (host_id, name)."""
        async with self._database.read(Pool.FIRING) as connection:
            statement = select(calendar_t.c.host_id, calendar_t.c.calendar_name, calendar_t.c.document)
            rows = (await connection.execute(statement)).all()
        found = {}
        for row in rows:
            # An unreadable calendar is treated as deleted: only the schedules that use it are parked.
            with suppress(ValidationError):
                found[row.host_id, row.calendar_name] = _spec_of(row)
            # A calendar of ten thousand days takes 30 ms to parse; let heartbeats run in between.
            await asyncio.sleep(0)
        return found


def _record_of(row: Any) -> CalendarRecord:
    return from_row(CalendarRecord, row, spec=_spec_of(row))


def _summary(spec: CalendarSpec) -> dict[str, Any]:
    """Summarise a calendar for the audit: the number of its days instead of up to ten thousand days."""
    document = spec.model_dump(mode="json")
    return {name: len(value) if name == "days" else value for name, value in document.items()}


def _spec_of(row: Any) -> CalendarSpec:
    return CalendarSpec.model_validate(row.document, extra="ignore")
