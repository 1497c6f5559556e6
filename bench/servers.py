"""A private PostgreSQL with durable defaults, for benchmarks."""

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import asyncpg
from tests.servers import PostgresServer


@contextmanager
def bench_postgres() -> Iterator[Callable[[], Awaitable[str]]]:
    """Start PostgreSQL. Yield a function that creates an empty database and returns its URL."""
    server = PostgresServer(is_durable=True)

    async def new_url() -> str:
        name = f"bench_{uuid.uuid4().hex}"
        connection = await asyncpg.connect(server.url("postgres"))
        await connection.execute(f'CREATE DATABASE "{name}"')
        await connection.close()
        return server.url(name)

    try:
        yield new_url
    finally:
        server.remove()
