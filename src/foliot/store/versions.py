"""Reading `schedule_version_t`: the definitions that executions were fired with."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Integer, Uuid, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.schedule import ScheduleSpec
from foliot.store.dialect import Dialect
from foliot.store.schema import schedule_version_t


async def read_specs(
    connection: AsyncConnection, dialect: Dialect, versions: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], ScheduleSpec]:
    """Those of these versions that there are and that can be understood."""
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
    """Those of these versions that there are, whether they can be understood or not."""
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
    """What this version understands of it: a newer one may have written fields that it does not know.

    One that can't be understood at all must not keep the others of its batch from being read.
    """
    try:
        return ScheduleSpec.model_validate(document, extra="ignore")
    except ValidationError:
        return None
