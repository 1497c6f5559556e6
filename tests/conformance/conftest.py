"""An empty database for every conformance test, with connections that all tests of a module share.

Opening the connections of a store takes 50 ms, and each connection prepares every statement anew. So the
tests of a module run in one event loop and share one database of each kind, emptied before each test.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from tests.conformance.suites.scene import Scene, empty
from tests.servers import PostgresServer

from foliot.db.migrate import upgrade
from foliot.instance.store import SqlStore, open_store
from foliot.timing.clock import Clock, SystemClock, VirtualClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Opened:
    """A database and the stores that were opened on it. The tests of a module use them in turn."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.clock = clock
        self._url = url
        self._stores: list[SqlStore] = []
        self._used = 0

    def begin(self) -> None:
        """Let a test use all stores, and set its clock, if it is virtual."""
        self._used = 0
        if isinstance(self.clock, VirtualClock):
            self.clock.jump((START - self.clock.now()).total_seconds())

    def store(self) -> SqlStore:
        """Return a store that this test does not use yet. It is new; only its connections are not."""
        if self._used == len(self._stores):
            # A TTL long enough that a busy machine does not exceed its limits by accident.
            self._stores.append(open_store(self._url, clock=self.clock, ttl_s=10))
        self._used += 1
        return SqlStore.over(self._stores[self._used - 1].database)

    async def close(self) -> None:
        for each in self._stores:
            await each.close()


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres_opened(shared_postgres_url: str) -> AsyncIterator[Opened]:
    opened = Opened(shared_postgres_url, SystemClock())
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sqlite_opened(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Opened]:
    path = tmp_path_factory.mktemp("contract") / "foliot.db"
    shutil.copy(sqlite_template, path)
    opened = Opened(f"sqlite:///{path}", VirtualClock(START))
    yield opened
    await opened.close()


@pytest.fixture
def contract_database(request: pytest.FixtureRequest) -> Opened:
    opened: Opened = request.getfixturevalue(f"{request.param}_opened")
    opened.begin()
    return opened


@pytest.fixture
def clock(contract_database: Opened) -> Clock:
    """Return the clock: for SQLite a virtual one that stands still, for PostgreSQL the system's."""
    return contract_database.clock


@pytest.fixture
async def scene(contract_database: Opened) -> AsyncIterator[Scene]:
    async def open_another() -> SqlStore:
        return contract_database.store()

    store = contract_database.store()
    await empty(store)
    yield Scene(store, open_another)
    await _end_tasks()


async def _end_tasks() -> None:
    """Cancel the tasks that a test left behind, before the next test empties the database."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    asyncio.get_running_loop().set_exception_handler(None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on both databases, unless its class sets `databases`."""
    if "contract_database" in metafunc.fixturenames:
        databases = getattr(metafunc.cls, "databases", ("sqlite", "postgres"))
        metafunc.parametrize("contract_database", databases, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the async tests of a module that uses a shared database, and their fixtures, in one event loop."""
    here = [
        each
        for each in items
        if isinstance(each, pytest.Function) and each.path.parent == Path(__file__).parent
    ]
    sharing = {each.path for each in here if "contract_database" in each.fixturenames}
    for item in here:
        if item.path not in sharing:
            continue
        if asyncio.iscoroutinefunction(item.obj):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for each in definitions:
                if each.baseid.startswith("tests/conformance"):
                    vars(getattr(each.func, "__func__", each.func)).setdefault("_loop_scope", "module")
