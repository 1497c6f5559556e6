"""Reading `schedule_version_t`: the definitions that executions were fired with."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Integer, Uuid, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Dialect
from foliot.db.tables.schedules import schedule_version_t
from foliot.model.schedule import ScheduleSpec


async def read_specs(
    connection: AsyncConnection, dialect: Dialect, versions: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], ScheduleSpec]:
    """Return the definitions of these versions. Missing and unreadable versions are left out."""
    if not versions:
        return {}
    wanted = dialect.rows("wanted", {"schedule_id": Uuid(), "aggregate_version": Integer()}, versions)
    table = schedule_version_t
    result = await connection.execute(
        select(table.c.schedule_id, table.c.aggregate_version, table.c.document).join(
            wanted,
            and_(
                wanted.c.schedule_id == table.c.schedule_id,
                wanted.c.aggregate_version == table.c.aggregate_version,
            ),
        )
    )
    return {
        (row.schedule_id, row.aggregate_version): spec
        for row in result
        if (spec := _spec_of(row.document)) is not None
    }


async def existing_versions(
    connection: AsyncConnection, dialect: Dialect, versions: Sequence[tuple[UUID, int]]
) -> set[tuple[UUID, int]]:
    """Return those of these versions that exist, readable or not."""
    wanted = dialect.rows("wanted", {"schedule_id": Uuid(), "aggregate_version": Integer()}, versions)
    table = schedule_version_t
    result = await connection.execute(
        select(table.c.schedule_id, table.c.aggregate_version).join(
            wanted,
            and_(
                wanted.c.schedule_id == table.c.schedule_id,
                wanted.c.aggregate_version == table.c.aggregate_version,
            ),
        )
    )
    return {(row.schedule_id, row.aggregate_version) for row in result}


def _spec_of(document: Any) -> ScheduleSpec | None:
    """Parse a definition, ignoring fields that only newer versions know. None: it can't be read.

    One unreadable definition must not prevent reading the others of its batch.
    """
    try:
        return ScheduleSpec.model_validate(document, extra="ignore")
    except ValidationError:
        return None
