"""Shared fixtures: private servers, and a separate database for each test."""

import asyncio
import gc
import os
import signal
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

import hypothesis
import pytest

from foliot.db.migrate import upgrade
from foliot.instance.store import SqlStore, open_store
from foliot.timing.clock import Clock, SystemClock
from tests.brokers import Broker, NatsBroker, RabbitBroker, RedisBroker, describe_kafka, open_kafka
from tests.etcd import EtcdCluster
from tests.made_once import share_authorities, share_compiled_statements, share_slow_hashes
from tests.servers import TEMPLATE, PostgresServer, fast_folder

hypothesis.settings.load_profile("ci")
"""Equal examples on every run, and no deadline, because a busy machine is slow."""

share_authorities()
share_compiled_statements()
share_slow_hashes()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape invalid text in test reports, because it can't be sent between processes."""
    return _whole((yield))


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_whole(each) for each in value)
    return value


OpenStore = Callable[..., Awaitable[SqlStore]]


AT_THE_MACHINES_PACE = (
    "tests/chaos/",
    "tests/cluster/",
    "tests/integration/",
    "tests/web/",
    "tests/conformance/test_relay",
    "tests/conformance/test_transport_",
)
"""Tests that wait for something. On a busy machine they may time out, so they are retried twice.

The report names the retried ones.
"""
LATE = ["TimeoutError", "waited in vain", "Locator expected"]
"""Only these errors are retried. A wrong result fails at once."""


LONG = (
    "tests/cluster/test_transports.py",
    "tests/cluster/test_executing.py",
    "tests/integration/test_worker.py",
    "tests/web/test_everywhere.py",
    "tests/web/test_schedule",
)
"""Files that run first. Started last, a long file would keep one process busy while the others idle."""
SLOW = ("tests/cluster/", "tests/integration/", "tests/web/")
"""Folders that run next. The fast files of the other folders then fill the end evenly."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (not item.nodeid.startswith(LONG), not item.nodeid.startswith(SLOW)))
    for item in items:
        if item.nodeid.startswith(AT_THE_MACHINES_PACE):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=LATE))


def pytest_configure() -> None:
    """Put the folders of tests into memory, and restore default signal handlers.

    A shell may have set signals to be ignored for its background processes. Processes started by tests must
    end on a signal.
    """
    memory = fast_folder()
    if memory is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection. This saves a second."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    return describe_kafka()


def _lasting(open_broker: Callable[[], Broker]) -> Iterator[Broker]:
    broker = open_broker()
    try:
        yield broker
    finally:
        broker.remove()


BROKERS = {"broker", "redis_broker", "nats_broker", "rabbitmq_broker", "kafka_broker"}


@pytest.fixture(autouse=True)
def _forget_broken_connections(request: pytest.FixtureRequest) -> Iterator[None]:
    """Discard open connections to killed brokers, so that no later test fails with their warnings."""
    yield
    if BROKERS.intersection(request.fixturenames):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="session")
def redis_broker() -> Iterator[Broker]:
    yield from _lasting(RedisBroker)


@pytest.fixture(scope="session")
def nats_broker() -> Iterator[Broker]:
    yield from _lasting(NatsBroker)


@pytest.fixture(scope="session")
def rabbitmq_broker() -> Iterator[Broker]:
    yield from _lasting(RabbitBroker)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    yield from _lasting(open_kafka)


@pytest.fixture(scope="session")
def etcd_cluster() -> Iterator[EtcdCluster]:
    cluster = EtcdCluster()
    try:
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.state(f'CREATE DATABASE "{TEMPLATE}"')
        asyncio.run(_upgraded(server.url(TEMPLATE)))
        yield server
    finally:
        server.remove()


async def _upgraded(url: str) -> None:
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    await store.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """Create a database for this test, cloned from a template with the schema."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("template") / "foliot.db"
    asyncio.run(_upgraded(f"sqlite:///{file}"))
    assert [file] == [*file.parent.iterdir()], "all is in one file"
    return file


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """Create a database file for this test, copied from a template with the schema."""
    file = tmp_path / "foliot.db"
    copyfile(sqlite_template, file)
    return f"sqlite:///{file}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of a database. The test runs on both SQLite and PostgreSQL."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def open_test_store() -> AsyncIterator[OpenStore]:
    """Yield a function that opens stores with the schema in place. They are closed after the test."""
    opened: list[SqlStore] = []

    async def open_one(
        url: str, *, clock: Clock | None = None, shards: int = 1, ttl_s: float = 3.0
    ) -> SqlStore:
        store = open_store(url, clock=clock or SystemClock(), ttl_s=ttl_s)
        opened.append(store)
        await upgrade(store.database, shards=shards)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(database_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(database_url)
