"""A fresh store for every test of the contracts, made quickly.

Cloning a PostgreSQL database takes half a second and migrating a SQLite file a fifth, so the contracts share
one database that is emptied, and copy one file.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.servers import PostgresServer

from foliot.store.migrate import upgrade
from foliot.store.sql import SqlStore, open_store
from foliot.testing.conformance.scene import Scene, empty
from foliot.timing.clock import Clock, SystemClock, VirtualClock


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "foliot.db"

    async def make() -> None:
        store = open_store(f"sqlite:///{path}", clock=SystemClock())
        await upgrade(store.database)
        await store.close()

    asyncio.run(make())
    return path


@pytest.fixture
def contract_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("shared_postgres_url"))
    path = tmp_path / "foliot.db"
    shutil.copy(request.getfixturevalue("sqlite_template"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def clock(contract_url: str) -> Clock:
    """SQLite's stands still for the whole test, unless it is moved; PostgreSQL has its own."""
    if contract_url.startswith("sqlite"):
        return VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    return SystemClock()


@pytest.fixture
async def scene(contract_url: str, clock: Clock) -> AsyncIterator[Scene]:
    opened: list[SqlStore] = []

    async def open_another() -> SqlStore:
        # Limits that a machine which is busy elsewhere does not meet by accident.
        opened.append(open_store(contract_url, clock=clock, ttl_s=10))
        return opened[-1]

    store = await open_another()
    await empty(store)
    yield Scene(store, open_another)
    for each in opened:
        await each.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on both databases, unless the test's class names its `databases`."""
    if "contract_url" in metafunc.fixturenames:
        databases = getattr(metafunc.cls, "databases", ("sqlite", "postgres"))
        metafunc.parametrize("contract_url", databases, indirect=True)
