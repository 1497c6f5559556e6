"""One server per module and database. Each test creates what it needs, under unique names."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

import httpx2
import pytest

from tests.api.answers import made
from tests.api.hosts import Host, two_hosts, yearly
from tests.api.served import OPERATOR_KEY, SCHEDULES, Served, served
from tests.servers import PostgresServer

BOTH = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module on the databases that its variable DATABASES names, by default on both.

    Routes have no SQL of their own, and tests/conformance proves the SQL on both databases. So a module
    needs both only if it tests what depends on the database (locks, values that a database refuses, its
    failures, what it keeps in rows and files) or statements that tests/conformance does not call (agents,
    readers of events, instances, defaults of tasks). Of the others, some run on each database. Every route is
    asked validly on both: in test_access_matrix on PostgreSQL, in test_openapi on SQLite.
    """
    if "module_url" in metafunc.fixturenames:
        databases = getattr(metafunc.module, "DATABASES", BOTH)
        metafunc.parametrize("module_url", databases, indirect=True, scope="module")


@pytest.fixture(scope="module")
def module_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[str]:
    """Create a database for this module, with the schema in place."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("served") / "foliot.db"
        copyfile(sqlite_template, file)
        yield f"sqlite:///{file}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        yield url


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, module_url: str) -> Iterator[Served]:
    """Start a server with all roles. A module changes its options with the variable SERVER."""
    with served(module_url, **getattr(request.module, "SERVER", {})) as made_:
        yield made_


@pytest.fixture
def operator(server: Served) -> httpx2.Client:
    """Return a client with the operator's key: an admin of the default host."""
    return server.by(OPERATOR_KEY)


@pytest.fixture(scope="module")
def hosts(server: Served) -> tuple[Host, Host]:
    """Return the default host and a second one."""
    return two_hosts(server)


@pytest.fixture(scope="module")
def host(hosts: tuple[Host, Host]) -> Host:
    """Return the default host."""
    return hosts[0]


@pytest.fixture
def definition() -> dict[str, Any]:
    """Return the definition of a schedule that does not become due during a test."""
    return yearly()


@pytest.fixture
def schedule(operator: httpx2.Client, definition: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = made(operator.post(SCHEDULES, json=definition))
    return document


@pytest.fixture
def path(schedule: dict[str, Any]) -> str:
    """Return the API path of the schedule."""
    return f"{SCHEDULES}/{schedule['schedule_id']}"
