"""The schema that migrations make: the one the statements were written for, made once, whoever asks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, inspect, select
from tests.servers import PostgresServer

from foliot.db import migrations
from foliot.db.dialect import Pool
from foliot.db.migrate import require_schema, revisions, schema_status, upgrade
from foliot.db.tables.access import host_t
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.metadata import metadata
from foliot.instance.store import SqlStore, open_store
from foliot.model.errors import SchemaError
from foliot.timing.clock import SystemClock

Open = Callable[[], SqlStore]


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database(template="template1") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return str(request.getfixturevalue("empty_postgres_url"))


@pytest.fixture
async def open_empty(empty_url: str) -> AsyncIterator[Open]:
    opened: list[SqlStore] = []

    def open_one() -> SqlStore:
        opened.append(open_store(empty_url, clock=SystemClock()))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


async def rows(store: SqlStore, statement: Any) -> list[Any]:
    async with store.database.read(Pool.API) as connection:
        return list((await connection.execute(statement)).all())


async def test_an_empty_database_is_refused_in_one_line_that_says_what_to_do(open_empty: Open) -> None:
    with pytest.raises(SchemaError) as told:
        await require_schema(open_empty().database)
    line = str(told.value)
    assert "\n" not in line
    assert "has no schema yet" in line
    assert "run `foliot db upgrade`" in line


async def test_an_upgrade_makes_an_empty_database_usable_and_a_second_does_nothing(open_empty: Open) -> None:
    store = open_empty()
    before = await upgrade(store.database, shards=3)
    assert (before.current, before.is_usable) == (None, False)
    assert before.pending[-1] == before.wanted
    await require_schema(store.database)
    hosts = await rows(store, select(host_t))
    again = await upgrade(store.database, shards=5)
    assert (again.current, again.pending, again.is_usable) == (before.wanted, (), True)
    assert await store.leases.shard_count() == 3
    assert await rows(store, select(host_t)) == hosts


async def test_many_that_upgrade_an_empty_database_at_once_all_succeed(open_empty: Open) -> None:
    stores = [open_empty() for _ in range(5)]
    statuses = await asyncio.gather(*(upgrade(store.database, shards=2) for store in stores))
    assert sum(1 for status in statuses if status.pending) == 1
    assert await rows(stores[0], select(func.count()).select_from(scheduler_lock_t)) == [(2,)]
    assert (await schema_status(stores[0].database)).is_usable


async def test_migrations_lead_to_the_schema_that_the_statements_were_written_for(open_empty: Open) -> None:
    store = open_empty()
    await upgrade(store.database)
    async with store.database.read(Pool.API) as connection:
        assert await connection.run_sync(_differences) == []
        expected = _expected_partial_indexes(store.database.dialect.name)
        assert await connection.run_sync(_partial_indexes) == expected


SEARCH_INDEX = "idx_schedule_text_search"


def _differences(connection: Connection) -> list[Any]:
    options = {
        "version_table": "schema_version_t",
        "compare_type": True,
        "compare_server_default": connection.dialect.name != "sqlite",
        # An index that not every database can have is no part of the tables.
        "include_name": lambda name, kind, _parents: (kind, name) != ("index", SEARCH_INDEX),
    }
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def _partial_indexes(connection: Connection) -> dict[str, str]:
    """The conditions of partial indexes, which Alembic does not compare, in one spelling for both."""
    found = {}
    for table in metadata.tables:
        for index in inspect(connection).get_indexes(table):
            options = index.get("dialect_options", {})
            condition = options.get("postgresql_where", options.get("sqlite_where"))
            if condition is not None:
                found[str(index["name"])] = _spelled(str(condition))
    return found


def _expected_partial_indexes(dialect: str) -> dict[str, str]:
    return {
        str(index.name): _spelled(str(index.dialect_options[dialect]["where"]))
        for table in metadata.tables.values()
        for index in table.indexes
        if index.dialect_options[dialect]["where"] is not None
    }


def _spelled(condition: str) -> str:
    """PostgreSQL gives back `status IN ('a', 'b')` as a cast array; only the words are compared."""
    for noise in ("::character varying", "::text", "::interval", "interval ", *"[]()", "ARRAY", " "):
        condition = condition.replace(noise, "")
    return condition.replace("=ANY", "IN")


def test_revisions_are_known_by_the_names_of_their_files() -> None:
    directory = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert revisions() == tuple(reversed([each.revision for each in directory.walk_revisions()]))
