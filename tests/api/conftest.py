"""One server for each module and database; every test in it makes what it needs under names of its own."""

import asyncio
import uuid
from collections.abc import Iterator

import asyncpg
import httpx2
import pytest

from tests.api.served import OPERATOR_KEY, Served, served
from tests.servers import PostgresServer


def _statement(server: PostgresServer, text: str) -> None:
    async def execute() -> None:
        connection = await asyncpg.connect(server.url("postgres"))
        try:
            await connection.execute(text)
        finally:
            await connection.close()

    asyncio.run(execute())


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database of this module's own, on each of the two."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('served') / 'foliot.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"api_{uuid.uuid4().hex}"
    _statement(server, f'CREATE DATABASE "{name}" TEMPLATE "template_foliot"')
    yield server.url(name)
    _statement(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def server(module_url: str) -> Iterator[Served]:
    with served(module_url) as made:
        yield made


@pytest.fixture
def operator(server: Served) -> httpx2.Client:
    """Has the operator's own key: an admin of the default host."""
    return server.by(OPERATOR_KEY)
