"""Statements on `schedule_text_t`: search of schedules by a part of their name or description.

The text has a table of its own, on PostgreSQL with a trigram index if the extension is available. It is not
part of `schedule_t`, because then every firing would update the index. Without the index, or for fewer than
three characters, a full scan takes 30 ms for 100,000 schedules; on `schedule_t` ten times as long.
"""

from uuid import UUID

from sqlalchemy import ColumnElement, delete
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.combined_inserts import Write, row_of_values
from foliot.db.dialect import Dialect
from foliot.db.tables.schedules import schedule_text_t
from foliot.db.types import storable
from foliot.model.schedule import Schedule

TRIGRAM = 3


def text_write(dialect: Dialect, schedule: Schedule) -> Write:
    """Build the write of a new schedule's search text."""
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
    """Update a schedule's search text after a change."""
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
    """Conditions on `schedule_text_t`: the host's schedules that contain `part`, which is in lower case."""
    return (
        schedule_text_t.c.host_id == host_id,
        dialect.contains(schedule_text_t.c.search_text, part, is_indexed=not is_short),
    )


def is_short(part: str) -> bool:
    """Whether the text is too short for a trigram. A search by the index would then read all of it."""
    return len(part) < TRIGRAM


def _text_of(schedule: Schedule) -> str:
    return storable(f"{schedule.spec.name}\n{schedule.spec.description}".lower())
