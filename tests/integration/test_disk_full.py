"""A disk that is full: what finds no room is refused and says why, what was acknowledged stays, and all goes
on by itself once there is room.

SQLite itself refuses to grow here. PostgreSQL is made to answer what it answers when a file can't grow, to
every insert of a schedule or an execution; a real disk that fills up may also end its server.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served, served
from tests.waiting import until

EVERY_SECOND = {"kind": "interval", "seconds": 1}
NEVER_YET = {"kind": "cron", "expression": "0 0 29 2 *"}
TABLES = ("schedule_t", "execution_t")
NO_ROOM = """
CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$
"""


@pytest.fixture
def server(database_url: str) -> Iterator[Served]:
    with served(database_url) as made:
        yield made


@contextmanager
def no_room(server: Served) -> Iterator[None]:
    if server.instance.store.database.dialect.name == "postgresql":
        with _refused_by_postgres(server):
            yield
        return
    limit = {"pages": 1}  # fewer than there are: it stays as large as it is

    def apply(raw: Any, *_: Any) -> None:
        cursor = raw.cursor()
        cursor.execute(f"PRAGMA max_page_count = {limit['pages']}")
        cursor.close()

    engines = {server.instance.store.database.engine(pool).sync_engine for pool in Pool}
    for engine in engines:
        event.listen(engine, "checkout", apply)
    try:
        yield
    finally:
        limit["pages"] = 1_000_000


@contextmanager
def _refused_by_postgres(server: Served) -> Iterator[None]:
    async def refuse(connection: AsyncConnection) -> None:
        await connection.execute(text(NO_ROOM))
        for table in TABLES:
            made = f"CREATE TRIGGER no_room BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION no_room()"
            await connection.execute(text(made))

    async def allow(connection: AsyncConnection) -> None:
        for table in TABLES:
            await connection.execute(text(f"DROP TRIGGER no_room ON {table}"))

    server.write(refuse)
    try:
        yield
    finally:
        server.write(allow)


def test_a_full_disk_is_told_and_survived(server: Served, database_url: str) -> None:
    by = server.by(OPERATOR_KEY)

    def create(name: str, trigger: dict[str, Any] = NEVER_YET) -> Any:
        # Long enough for a few of them to need another page.
        document = {"name": name, "description": "x" * 900, "trigger": trigger}
        return by.post(SCHEDULES, json={**document, "target": {"kind": "function", "name": "noop"}})

    def succeeded() -> int:
        found = by.get(f"{V1}/executions", params={"status": "success", "page_size": 500})
        return len(found.raise_for_status().json()["items"])

    assert create("ticks", EVERY_SECOND).status_code == 201
    until(lambda: succeeded() >= 2)
    acknowledged = ["ticks"]
    with no_room(server):
        for number in range(500):
            answer = create(f"more-{number:03}")
            if answer.status_code != 201:
                break
            acknowledged.append(f"more-{number:03}")
        assert answer.status_code == 503, answer.text
        assert "retry-after" in answer.headers
        assert answer.json()["code"] == "database_full"
        assert by.get(SCHEDULES).status_code == 200
        assert by.get("/healthz").status_code == 200
    before = succeeded()
    assert create("later").status_code == 201
    until(lambda: succeeded() >= before + 2)
    listed = by.get(SCHEDULES, params={"page_size": 500}).json()["items"]
    assert sorted(each["name"] for each in listed) == sorted([*acknowledged, "later"])
    if database_url.startswith("sqlite"):
        with sqlite3.connect(urlsplit(database_url).path[1:]) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
