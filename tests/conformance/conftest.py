"""A new store for every conformance test, created quickly.

Cloning a PostgreSQL database takes 0.5 s and migrating a SQLite file 0.2 s. So the tests share one PostgreSQL
database, which is emptied, and copy one SQLite file.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conformance.suites.scene import Scene, empty
from tests.servers import PostgresServer

from foliot.db.migrate import upgrade
from foliot.instance.store import SqlStore, open_store
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
    """Return the clock: for SQLite a virtual one that stands still, for PostgreSQL the system's."""
    if contract_url.startswith("sqlite"):
        return VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    return SystemClock()


@pytest.fixture
async def scene(contract_url: str, clock: Clock) -> AsyncIterator[Scene]:
    opened: list[SqlStore] = []

    async def open_another() -> SqlStore:
        # A TTL long enough that a busy machine does not exceed its limits by accident.
        opened.append(open_store(contract_url, clock=clock, ttl_s=10))
        return opened[-1]

    store = await open_another()
    await empty(store)
    yield Scene(store, open_another)
    for each in opened:
        await each.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on both databases, unless its class sets `databases`."""
    if "contract_url" in metafunc.fixturenames:
        databases = getattr(metafunc.cls, "databases", ("sqlite", "postgres"))
        metafunc.parametrize("contract_url", databases, indirect=True)
