"""What messages cost the database: ranges of an index and lookups by id, whatever the tables hold."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore, open_store
from foliot.model.policy import Priority
from foliot.timing.clock import SystemClock
from foliot.worker.claim_scope import ClaimScope
from tests.integration.test_queries import prepare, queues
from tests.plans import check, explain, primary_key
from tests.servers import PostgresServer

CLAIMABLE = "idx_execution_claimable"
QUEUES = "INSERT INTO queue_t (host_id, queue) SELECT DISTINCT host_id, queue FROM execution_t"


async def _fill(url: str) -> None:
    await prepare(url)
    store = open_store(url, clock=SystemClock())
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.exec_driver_sql(QUEUES)
    async with store.database.read(Pool.API) as connection:
        is_postgres = store.database.dialect.name == "postgresql"
        await connection.exec_driver_sql("VACUUM ANALYZE" if is_postgres else "ANALYZE")
    await store.close()


@pytest.fixture(scope="module")
def full_sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("full") / "foliot.db"
    asyncio.run(_fill(f"sqlite:///{path}"))
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def full_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        asyncio.run(_fill(url))
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def full_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"full_{request.param}_url"))


@pytest.fixture
async def store(full_url: str) -> AsyncIterator[SqlStore]:
    opened = open_store(full_url, clock=SystemClock())
    yield opened
    await opened.close()


async def test_what_waits_is_a_range_of_the_index_in_each_queue(store: SqlStore) -> None:
    now = await store.now()
    for since_s, with_fired in ((2, False), (3600, True)):
        _, plan = await explain(
            store,
            Pool.FIRING,
            store.dispatching.waiting(
                list(Priority),
                since=now - timedelta(seconds=since_s),
                until=now,
                limit=1000,
                with_fired=with_fired,
            ),
        )
        check(plan, CLAIMABLE)


async def test_some_are_claimed_by_their_ids(store: SqlStore) -> None:
    ids = [UUID(f"c{number:031x}") for number in range(200, 10_200, 200)]
    claims, plan = await explain(
        store, Pool.WORK, store.work.claim_some("worker", queues(), ids, lease_s=600)
    )
    assert claims
    check(plan, primary_key(store, "execution_t"))


async def test_a_scope_is_claimed_by_the_same_index_as_everything(store: SqlStore) -> None:
    scope = ClaimScope((Priority.HIGH,), 10.0)
    claims, plan = await explain(
        store, Pool.WORK, store.work.claim("worker", queues(), limit=10, lease_s=600, scope=scope)
    )
    assert len(claims) == 10
    check(plan, CLAIMABLE)
