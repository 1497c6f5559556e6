"""Statements on `schedule_text_t`: finding schedules by a part of their name or description.

A table of its own, with nothing else in it, and on PostgreSQL with an index of trigrams, where the database
has them: not on `schedule_t`, since firing would write to it. Without the index, or for fewer than three
characters, looking through it all takes 30 ms for 100,000 schedules; through `schedule_t` ten times that.
"""

from uuid import UUID

from sqlalchemy import ColumnElement, delete
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.schedule import Schedule
from foliot.store.dialect import Dialect
from foliot.store.schema import schedule_text_t
from foliot.store.together import Write, row_of_values
from foliot.store.types import storable

TRIGRAM = 3


def text_write(dialect: Dialect, schedule: Schedule) -> Write:
    """What a new schedule is found by."""
    return row_of_values(
        dialect,
        schedule_text_t,
        {
            "schedule_id": schedule.schedule_id,
            "host_id": schedule.host_id,
            "schedule_name": schedule.spec.name,
            "search_text": _text_of(schedule),
        },
    )


async def keep_text(connection: AsyncConnection, dialect: Dialect, before: Schedule, after: Schedule) -> None:
    """After every change of a schedule: what it is found by."""
    if after.deleted_ts is not None:
        await connection.execute(
            delete(schedule_text_t).where(schedule_text_t.c.schedule_id == after.schedule_id)
        )
        return
    if _text_of(before) == _text_of(after):
        return
    values = {"schedule_name": after.spec.name, "search_text": _text_of(after)}
    await connection.execute(
        dialect.insert(schedule_text_t)
        .values(schedule_id=after.schedule_id, host_id=after.host_id, **values)
        .on_conflict_do_update(index_elements=[schedule_text_t.c.schedule_id], set_=values)
    )


def is_found(
    dialect: Dialect, host_id: ColumnElement[UUID], part: ColumnElement[str], *, is_short: bool
) -> tuple[ColumnElement[bool], ...]:
    """Conditions on `schedule_text_t`: the host's schedules with these characters, in lower case."""
    return (
        schedule_text_t.c.host_id == host_id,
        dialect.contains(schedule_text_t.c.search_text, part, is_indexed=not is_short),
    )


def is_short(part: str) -> bool:
    """Whether it has no trigram to look up: the index would be read from end to end."""
    return len(part) < TRIGRAM


def _text_of(schedule: Schedule) -> str:
    return storable(f"{schedule.spec.name}\n{schedule.spec.description}".lower())
