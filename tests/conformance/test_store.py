"""The store's contract over both databases, and what each of them promises besides."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Executable, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool
from tests.conformance.suites.scene import STALE, WHOLE, Scene
from tests.conformance.suites.store import StoreConformance
from tests.conformance.suites.store_backfill import BackfillConformance
from tests.conformance.suites.store_calendars import CalendarConformance
from tests.conformance.suites.store_events import EventConformance
from tests.conformance.suites.store_executions import ExecutionsConformance
from tests.conformance.suites.store_secrets import SecretsConformance

from foliot.db import database as database_module
from foliot.db.database import TRANSIENT_TRIES
from foliot.db.dialect import Limit, Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.model.errors import DatabaseUnreachableError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.lease import Lease
from foliot.scheduler.leases.leases_sql import require_lease
from foliot.timing.clock import VirtualClock


class TestStore(
    StoreConformance,
    CalendarConformance,
    EventConformance,
    ExecutionsConformance,
    BackfillConformance,
    SecretsConformance,
):
    """Every part of the contract, on SQLite and on PostgreSQL."""


class TestPostgres:
    databases = ("postgres",)

    async def test_a_heartbeat_does_not_wait_for_a_firing_in_flight(self, scene: Scene) -> None:
        lease = await scene.lead()
        database = scene.store.database
        async with database.dialect.begin(database.engine(Pool.FIRING)) as connection:
            await require_lease(connection, lease)
            renewal = asyncio.create_task(scene.store.leases.renew(lease))
            assert not await scene.is_kept_waiting(renewal)
        assert (await renewal).lease == lease

    async def test_a_leader_that_stops_in_its_transaction_does_not_keep_its_successor_waiting(
        self, scene: Scene
    ) -> None:
        lease = await scene.lead(instance_id="one")
        other = await scene.open_another()
        engine = scene.store.database.engine(Pool.FIRING)
        connection = await engine.connect()
        await connection.begin()
        await scene.store.database.dialect.limit(connection, Limit(idle_s=0.1))
        await require_lease(connection, lease)
        standing = await other.leases.take(WHOLE, "two", STALE)
        assert standing.lease == Lease(WHOLE, lease.epoch + 1, "two")
        with pytest.raises(DBAPIError):
            await connection.execute(text("SELECT 1"))
        await connection.invalidate()
        await connection.close()

    async def test_a_claim_passes_over_what_another_is_claiming(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "allow"})
        ids = [await scene.trigger(schedule) for _ in range(4)]
        database = scene.store.database
        async with database.dialect.begin(database.engine(Pool.WORK)) as connection:
            wanted = select(execution_t).where(execution_t.c.execution_id.in_(ids[:2]))
            await connection.execute(wanted.with_for_update())
            claiming = asyncio.create_task(scene.claim())
            assert not await scene.is_kept_waiting(claiming)
        assert {claim.execution_id for claim in await claiming} == set(ids[2:])

    async def test_the_time_of_a_decision_is_the_servers(self, scene: Scene) -> None:
        async with scene.store.database.read(Pool.API) as connection:
            before = (await connection.execute(text("SELECT clock_timestamp()"))).scalar_one()
            told = await scene.now()
            after = (await connection.execute(text("SELECT clock_timestamp()"))).scalar_one()
        assert before <= told <= after

    async def test_a_statement_beyond_its_limit_is_a_database_that_can_not_serve(self, scene: Scene) -> None:
        async def work(connection: AsyncConnection) -> None:
            await scene.store.database.dialect.limit(connection, Limit(idle_s=1, statement_s=0.05))
            await connection.execute(text("SELECT pg_sleep(60)"))

        with pytest.raises(DatabaseUnreachableError):
            await scene.store.database.write(Pool.FIRING, work)


class TestSqlite:
    databases = ("sqlite",)

    async def test_a_worker_claims_from_more_queues_than_a_statement_has_parts(
        self, scene: Scene, clock: VirtualClock
    ) -> None:
        """The most urgent of all first, and no more than asked for: SQLite unites 500 selects at most."""
        host_id = await scene.add_host("other")
        queues = [(each, f"queue-{number}") for number in range(700) for each in (DEFAULT_HOST_ID, host_id)]
        ids = []
        for number in (699, 0, 350):
            for each in (DEFAULT_HOST_ID, host_id):
                schedule = await scene.add(
                    f"of {number}", host_id=each, queue=f"queue-{number}", overlap={"policy": "allow"}
                )
                for _ in range(2):
                    ids.append(await scene.trigger(schedule))
                    clock.advance(1)
        ids.append(await scene.trigger(await scene.add("elsewhere", queue="not-asked-for")))
        first = await scene.store.work.claim("one", queues, limit=7, lease_s=60)
        assert [claim.execution_id for claim in first] == ids[:7]
        rest = await scene.store.work.claim("one", queues, limit=100, lease_s=60)
        assert [claim.execution_id for claim in rest] == ids[7:12]


POSTGRES_TRANSIENT = {"serialization failure": "40001", "deadlock": "40P01", "lock timeout": "55P03"}


class Failing:
    """A transaction that writes, then fails with a real error of its database on its first runs."""

    def __init__(self, scene: Scene, folder: Path, failures: int, sqlstate: str = "40001") -> None:
        self._scene = scene
        self._folder = folder
        self._failures = failures
        self._sqlstate = sqlstate
        self.runs = 0

    async def __call__(self, connection: AsyncConnection) -> str:
        self.runs += 1
        raised = scheduler_lock_t.update().values(epoch=scheduler_lock_t.c.epoch + 1)
        await connection.execute(raised)
        if self.runs <= self._failures:
            await self._fail(connection)
        return "done"

    async def _fail(self, connection: AsyncConnection) -> None:
        if self._scene.store.database.dialect.name == "postgresql":
            await connection.exec_driver_sql(
                f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{self._sqlstate}'; END $$"
            )
        async with _locked_file(self._folder / "locked.db") as locked:
            await locked.exec_driver_sql("BEGIN IMMEDIATE")

    async def epoch(self) -> int:
        [[epoch]] = await self._scene.rows(select(scheduler_lock_t.c.epoch))
        assert isinstance(epoch, int)
        return epoch


@asynccontextmanager
async def _locked_file(path: Path) -> AsyncIterator[AsyncConnection]:
    """A connection to a SQLite file that somebody else has locked, and that does not wait."""
    owner = sqlite3.connect(path, isolation_level=None)
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 0}, poolclass=NullPool
    )
    try:
        owner.execute("BEGIN EXCLUSIVE")
        async with engine.connect() as connection:
            yield connection
    finally:
        owner.close()
        await engine.dispose()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "TRANSIENT_PAUSE_S", 0.0)


class TestTransactions:
    """What is rolled back for a passing reason is run again, a bounded number of times."""

    async def test_a_passing_failure_is_not_seen_by_who_asked(self, scene: Scene, tmp_path: Path) -> None:
        work = Failing(scene, tmp_path, failures=TRANSIENT_TRIES - 1)
        assert await scene.store.database.write(Pool.API, work) == "done"
        assert work.runs == TRANSIENT_TRIES
        assert await work.epoch() == 1, "what failed was rolled back"

    async def test_a_failure_that_does_not_pass_is_raised_after_a_bounded_number_of_tries(
        self, scene: Scene, tmp_path: Path
    ) -> None:
        work = Failing(scene, tmp_path, failures=1000)
        with pytest.raises((DBAPIError, DatabaseUnreachableError)):
            await scene.store.database.write(Pool.API, work)
        assert work.runs == TRANSIENT_TRIES
        assert await work.epoch() == 0

    async def test_an_error_of_the_callers_own_is_raised_at_once_and_nothing_is_written(
        self, scene: Scene, tmp_path: Path
    ) -> None:
        failing = Failing(scene, tmp_path, failures=0)

        async def work(connection: AsyncConnection) -> None:
            await failing(connection)
            raise KeyError("mine")

        with pytest.raises(KeyError):
            await scene.store.database.write(Pool.API, work)
        assert failing.runs == 1
        assert await failing.epoch() == 0


class TestPostgresTransactions:
    databases = ("postgres",)

    @pytest.mark.parametrize("kind", POSTGRES_TRANSIENT)
    async def test_each_passing_failure_is_tried_again(self, scene: Scene, tmp_path: Path, kind: str) -> None:
        work = Failing(scene, tmp_path, failures=2, sqlstate=POSTGRES_TRANSIENT[kind])
        assert await scene.store.database.write(Pool.API, work) == "done"
        assert (work.runs, await work.epoch()) == (3, 1)

    async def test_other_errors_are_not_tried_again(self, scene: Scene, tmp_path: Path) -> None:
        work = Failing(scene, tmp_path, failures=2, sqlstate="22012")
        with pytest.raises(DBAPIError):
            await scene.store.database.write(Pool.API, work)
        assert work.runs == 1

    async def test_a_connection_that_breaks_is_never_tried_again_by_itself(
        self, scene: Scene, tmp_path: Path
    ) -> None:
        """Its COMMIT may have been carried out: whoever asked has to look."""
        work = Failing(scene, tmp_path, failures=2, sqlstate="57P01")
        with pytest.raises(DatabaseUnreachableError):
            await scene.store.database.write(Pool.API, work)
        assert work.runs == 1

    async def test_a_real_deadlock_is_resolved_unseen(self, scene: Scene) -> None:
        await scene.store.leases.reshard(2)
        meeting = asyncio.Barrier(2)
        runs = []

        def crossing(first: int, second: int) -> Awaitable[None]:
            is_first_run = True

            async def work(connection: AsyncConnection) -> None:
                nonlocal is_first_run
                runs.append(first)
                await connection.execute(_raise_epoch(first))
                if is_first_run:
                    is_first_run = False
                    await meeting.wait()
                await connection.execute(_raise_epoch(second))

            return scene.store.database.write(Pool.API, work)

        await asyncio.gather(crossing(1, 2), crossing(2, 1))
        assert len(runs) == 3
        rows = await scene.rows(select(scheduler_lock_t.c.epoch))
        assert [row.epoch for row in rows] == [3, 3]


def _raise_epoch(lock_id: int) -> Executable:
    table = scheduler_lock_t
    return table.update().where(table.c.lock_id == lock_id).values(epoch=table.c.epoch + 1)
