"""One server for each module and database; every test in it makes what it needs under names of its own."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.api.answers import made
from tests.api.hosts import Host, two_hosts, yearly
from tests.api.served import OPERATOR_KEY, SCHEDULES, Served, served
from tests.servers import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database of this module's own, on each of the two."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('served') / 'foliot.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        yield url


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, module_url: str) -> Iterator[Served]:
    """With all roles, unless the module says in SERVER what else it is to be."""
    with served(module_url, **getattr(request.module, "SERVER", {})) as made_:
        yield made_


@pytest.fixture
def operator(server: Served) -> httpx2.Client:
    """Has the operator's own key: an admin of the default host."""
    return server.by(OPERATOR_KEY)


@pytest.fixture(scope="module")
def hosts(server: Served) -> tuple[Host, Host]:
    """The default host and another."""
    return two_hosts(server)


@pytest.fixture(scope="module")
def host(hosts: tuple[Host, Host]) -> Host:
    """The default host."""
    return hosts[0]


@pytest.fixture
def definition() -> dict[str, Any]:
    """A schedule that does not become due while a test runs."""
    return yearly()


@pytest.fixture
def schedule(operator: httpx2.Client, definition: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = made(operator.post(SCHEDULES, json=definition))
    return document


@pytest.fixture
def path(schedule: dict[str, Any]) -> str:
    """Where the schedule is."""
    return f"{SCHEDULES}/{schedule['schedule_id']}"
