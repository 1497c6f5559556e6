"""What docs/light-portal.md says: its queries on the view, its way of moving over, its consumers."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore
from foliot.model.schedule import ScheduleSpec
from tests.conftest import OpenStore
from tests.engine import add

PAGE = (Path(__file__).parents[2] / "docs" / "light-portal.md").read_text()
HOST = "01964b05-552a-7c4b-9184-6857e7f3dc5f"
THEIRS = """
CREATE TABLE schedule_t (
    schedule_id UUID NOT NULL, host_id UUID NOT NULL, schedule_name VARCHAR(126) NOT NULL,
    frequency_unit VARCHAR(16) NOT NULL, frequency_time INTEGER NOT NULL,
    start_ts TIMESTAMP WITH TIME ZONE NOT NULL, next_run_ts TIMESTAMP WITH TIME ZONE NOT NULL,
    event_topic VARCHAR(126) NOT NULL, event_type VARCHAR(126) NOT NULL, event_data TEXT NOT NULL,
    aggregate_version BIGINT DEFAULT 1 NOT NULL, active BOOLEAN NOT NULL DEFAULT TRUE,
    PRIMARY KEY (schedule_id)
)
"""
COLUMNS = [
    "schedule_id",
    "host_id",
    "schedule_name",
    "frequency_unit",
    "frequency_time",
    "start_ts",
    "next_run_ts",
    "event_topic",
    "event_type",
    "event_data",
    "aggregate_version",
    "active",
]
EVENT_DATA = '{"specversion": "1.0", "id": "1", "source": "/portal", "type": "UserSynced", "data": {"n": 1}}'


@pytest.fixture
async def store_here(postgres_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(postgres_url)


async def exported(url: str) -> list[dict[str, Any]]:
    """What the page's query makes of a schedule of theirs."""
    found = re.search(r'-c "(.*?)" > portal.json', PAGE, re.DOTALL)
    assert found is not None
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"CREATE SCHEMA portal; SET search_path = portal; {THEIRS}")
        await connection.execute(
            "INSERT INTO schedule_t VALUES (gen_random_uuid(), $1, 'sync users', 'minutes', 5, $2, $2, "
            "'portal-event', 'UserSync', $3, 7, TRUE)",
            HOST,
            datetime(2025, 1, 1, tzinfo=UTC),
            EVENT_DATA,
        )
        return list(json.loads(await connection.fetchval(found[1])))
    finally:
        await connection.close()


async def test_their_schedules_move_over_by_the_pages_query_and_are_seen_through_the_view(
    postgres_url: str, store_here: SqlStore
) -> None:
    [document] = await exported(postgres_url)
    schedule = await add(store_here, ScheduleSpec.parse(document))
    query = re.search(r"`(SELECT \* FROM light_portal_schedule_v .*?) LIMIT \?`", PAGE)
    assert query is not None
    due = query[1].replace("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP + interval '5 minutes'")
    async with store_here.database.read(Pool.API) as connection:
        [row] = (await connection.execute(text(due))).all()
    assert list(row._fields) == COLUMNS
    assert (row.schedule_id, row.schedule_name) == (schedule.schedule_id, "sync users")
    assert (row.frequency_unit, row.frequency_time) == ("MINUTES", 5)
    assert (row.event_topic, row.event_type, row.event_data) == ("portal-event", "UserSync", EVENT_DATA)
    assert row.start_ts == datetime(2025, 1, 1, tzinfo=UTC)
    assert row.next_run_ts.minute % 5 == row.next_run_ts.second == 0, "the same grid"


async def test_a_reader_of_theirs_may_keep_its_offset_where_foliot_looks(store_here: SqlStore) -> None:
    blocks = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    reading, keeping = (block.split(";") for block in blocks)
    async with store_here.database.engine(Pool.API).begin() as connection:
        end = (await connection.execute(text(reading[0]))).scalar_one()
        await connection.execute(text(reading[1]), {"next": 1, "end": end})
        await connection.execute(text(keeping[0]))
        await connection.execute(text(keeping[1]), {"end": end})
    standing = await store_here.consumers.standing("portal-query")
    assert [each.next_offset for each in standing.positions] == [end]
