"""Each fault of the proxy, as a client of a real PostgreSQL sees it."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.chaos.proxy import Proxy, Way
from tests.engine import until

LONG_S = 30.0
SOON_S = 0.3
"""Long enough for a reply that was let through to arrive."""


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    found = Proxy(postgres_url)
    await found.start()
    yield found
    await found.close()


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE TABLE note (words text)")
    yield connection
    await connection.close()


@pytest.fixture
async def client(proxy: Proxy, direct: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    """Connected through the proxy, once the table is there."""
    connection = await asyncpg.connect(proxy.url, timeout=LONG_S)
    yield connection
    connection.terminate()


async def count(connection: asyncpg.Connection) -> int:
    return int(await connection.fetchval("SELECT count(*) FROM note"))


async def note(connection: asyncpg.Connection, words: str = "noted") -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO note VALUES ($1)", words)


async def test_what_is_not_at_fault_passes_whatever_its_size(client: asyncpg.Connection) -> None:
    words = "w" * 300_000
    await note(client, words)
    assert await client.fetchval("SELECT words FROM note") == words


async def test_a_cut_connection_is_lost_and_a_new_one_is_taken(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    proxy.cut()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await count(client)
    again = await asyncpg.connect(proxy.url, timeout=LONG_S)
    assert await count(again) == 0
    await again.close()


async def test_nobody_is_taken_while_connections_are_refused(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    await proxy.refuse()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncpg.connect(proxy.url, timeout=LONG_S)
    await proxy.accept()
    again = await asyncpg.connect(proxy.url, timeout=LONG_S)
    assert await count(again) == 0
    await again.close()


async def test_what_is_delayed_takes_its_time_both_ways(proxy: Proxy, client: asyncpg.Connection) -> None:
    clock = asyncio.get_running_loop().time
    proxy.delay(SOON_S)
    began = clock()
    await client.execute("SELECT 1")
    assert clock() - began >= 2 * SOON_S


async def test_requests_that_are_held_arrive_later(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    proxy.hold(Way.REQUESTS)
    # No limit of the client's own: it would send a request to cancel after it, which may arrive first.
    asked = asyncio.create_task(client.execute("INSERT INTO note VALUES ('late')"))
    await asyncio.wait([asked], timeout=SOON_S)
    assert not asked.done()
    assert await count(direct) == 0
    proxy.heal()
    assert await asked == "INSERT 0 1"
    assert await count(direct) == 1


async def test_a_request_whose_reply_is_held_is_carried_out(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    proxy.hold(Way.REPLIES)
    asked = asyncio.create_task(note_at_once(client))

    async def has_arrived() -> bool:
        return await count(direct) == 1

    await until(has_arrived)
    assert not asked.done()
    proxy.heal()
    assert await asked == "INSERT 0 1"


async def note_at_once(connection: asyncpg.Connection) -> str:
    return str(await connection.execute("INSERT INTO note VALUES ('noted')"))


async def test_a_lost_reply_to_commit_leaves_the_client_in_doubt_and_the_row_in_place(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    catch = proxy.lose_commit(of="INSERT INTO note")
    async with client.transaction():
        # Not the transaction that is meant.
        await client.execute("SELECT 1")
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await note(client)
    assert catch.caught.is_set()
    assert proxy.lost_commits == 1
    assert await count(direct) == 1


async def test_a_rollback_is_not_taken_for_a_commit(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    proxy.lose_commit(of="INSERT INTO note")
    transaction = client.transaction()
    await transaction.start()
    await client.execute("INSERT INTO note VALUES ('gone')")
    await transaction.rollback()
    assert proxy.lost_commits == 0
    assert await count(direct) == 0


async def test_a_transaction_that_is_held_at_its_begin_goes_on_when_it_is_released(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    await note(client)
    catch = proxy.hold_begin(of="INSERT INTO note")
    noted = asyncio.create_task(note(client))
    await asyncio.wait_for(catch.caught.wait(), LONG_S)
    assert await count(direct) == 1
    catch.released.set()
    await noted
    assert await count(direct) == 2
