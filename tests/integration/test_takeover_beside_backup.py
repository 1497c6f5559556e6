"""A takeover ends no session that is not Foliot's own, and waits for none that only reads."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from foliot.db.postgres_url import APPLICATION_NAME
from foliot.instance.store import SqlStore, open_store
from foliot.model.lease import Shard
from foliot.timing.clock import SystemClock
from tests.conftest import OpenStore
from tests.engine import TTL_S, until
from tests.servers import PostgresServer

SHARD = Shard(0, 1)
MONITOR = "monitoring_app"
"""A role that is no superuser, and sees what other roles' sessions do."""


@pytest.fixture
def monitor_url(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    async def grant() -> None:
        connection = await asyncpg.connect(postgres_url)
        try:
            await connection.execute(
                f"CREATE ROLE {MONITOR} LOGIN; GRANT pg_monitor TO {MONITOR}; "
                f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {MONITOR}"
            )
        finally:
            await connection.close()

    async def revoke() -> None:
        connection = await asyncpg.connect(postgres_url)
        try:
            await connection.execute(f"DROP OWNED BY {MONITOR}; DROP ROLE {MONITOR}")
        finally:
            await connection.close()

    asyncio.run(grant())
    yield make_url(postgres_url).set(username=MONITOR).render_as_string(hide_password=False)
    asyncio.run(revoke())


@pytest.fixture
def neighbour_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database whose tables have the same identifiers: both are clones."""
    with postgres_server.database() as url:
        yield url


@asynccontextmanager
async def held(url: str, lock: str, application_name: str = "somebody") -> AsyncIterator[asyncpg.Connection]:
    """Another session with an open transaction that is older than a leader's may be."""
    connection = await asyncpg.connect(url, server_settings={"application_name": application_name})
    try:
        await connection.execute("BEGIN")
        await connection.execute(lock)

        async def is_old() -> bool:
            age = "SELECT clock_timestamp() - now() > make_interval(secs => $1)"
            return bool(await connection.fetchval(age, TTL_S))

        await until(is_old)
        yield connection
    finally:
        connection.terminate()


READS = "LOCK TABLE scheduler_lock_t IN ACCESS SHARE MODE"
LOCKS_THE_ROW = "SELECT 1 FROM scheduler_lock_t FOR KEY SHARE"


async def take(store: SqlStore) -> bool:
    return (await store.leases.take(SHARD, "follower", -1.0)).lease is not None


async def test_a_backup_by_the_same_role_outlives_a_takeover(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url, ttl_s=TTL_S)
    async with held(postgres_url, READS, "pg_dump") as backup, asyncio.timeout(30):
        assert await take(store)
        assert await backup.fetchval("SELECT count(*) FROM scheduler_lock_t") == 1


async def test_a_session_without_a_name_that_only_reads_outlives_a_takeover_that_must_wait(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url, ttl_s=TTL_S)
    async with held(postgres_url, READS, "") as backup, held(postgres_url, LOCKS_THE_ROW, "") as leftover:
        async with asyncio.timeout(30):
            assert await take(store)
        assert await backup.fetchval("SELECT 1") == 1
        assert leftover.is_closed() or not await _is_alive(leftover)


async def _is_alive(connection: asyncpg.Connection) -> bool:
    try:
        return bool(await connection.fetchval("SELECT 1"))
    except asyncpg.PostgresError:
        return False
    except (ConnectionError, asyncpg.InterfaceError):
        return False


async def test_a_superusers_backup_keeps_nobody_from_leading_who_may_see_it(
    postgres_url: str, monitor_url: str
) -> None:
    store = open_store(monitor_url, clock=SystemClock(), ttl_s=TTL_S)
    try:
        async with held(postgres_url, READS, "pg_dump") as backup, asyncio.timeout(30):
            assert await take(store)
            assert await backup.fetchval("SELECT 1") == 1
        # Also while somebody's leftover is ended.
        async with (
            held(postgres_url, READS, "") as backup,
            held(monitor_url, LOCKS_THE_ROW, APPLICATION_NAME) as leftover,
        ):
            async with asyncio.timeout(30):
                assert await take(store)
            assert await backup.fetchval("SELECT 1") == 1
            assert not await _is_alive(leftover)
    finally:
        await store.close()


async def test_another_programs_lock_on_the_row_is_waited_for_and_never_ended(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url, ttl_s=TTL_S)
    async with held(postgres_url, LOCKS_THE_ROW, "psql") as other:
        with pytest.raises(Exception, match="lock timeout"):
            await take(store)
        assert await _is_alive(other)
        await other.execute("ROLLBACK")
        assert await take(store)


async def test_a_session_of_another_database_with_equal_tables_is_left_alone(
    neighbour_url: str, postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url, ttl_s=TTL_S)
    async with (
        held(neighbour_url, LOCKS_THE_ROW, APPLICATION_NAME) as neighbour,
        held(postgres_url, LOCKS_THE_ROW, APPLICATION_NAME),
    ):
        async with asyncio.timeout(30):
            assert await take(store)
        assert await _is_alive(neighbour)


async def test_a_real_dump_goes_on_while_the_lease_changes_hands(
    postgres_server: PostgresServer, postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url, ttl_s=TTL_S)
    # A table that the dump can't read yet: it waits there, with locks on all the others.
    blocker = await asyncpg.connect(postgres_url)
    await blocker.execute("CREATE TABLE zz_last (id int)")
    await blocker.execute("BEGIN; LOCK TABLE zz_last IN ACCESS EXCLUSIVE MODE")
    observing = await asyncpg.connect(postgres_url)
    dump = await asyncio.create_subprocess_exec(
        postgres_server.tool("pg_dump"), postgres_url, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:

        async def waits_long_enough() -> bool:
            found = await observing.fetchval(
                "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) "
                "WHERE application_name = 'pg_dump' AND datname = current_database() "
                "AND relation = 'scheduler_lock_t'::regclass "
                "AND xact_start < clock_timestamp() - make_interval(secs => $1)",
                TTL_S,
            )
            return bool(found)

        await until(waits_long_enough)
        async with asyncio.timeout(30):
            assert await take(store)
        await blocker.execute("ROLLBACK")
        written, complaints = await asyncio.wait_for(dump.communicate(), 60)
        assert dump.returncode == 0, complaints
        assert b"scheduler_lock_t" in written
    finally:
        blocker.terminate()
        observing.terminate()
        if dump.returncode is None:
            dump.kill()
            await dump.communicate()
