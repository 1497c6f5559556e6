"""What the engine survives: crashes, lost replies, pauses, clocks that lie. On real databases."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from foliot.db.dialect import Pool
from foliot.instance.spec import ENGINE
from foliot.instance.store import SqlStore
from foliot.model.errors import DatabaseUnreachableError, FencedError
from foliot.model.execution import Status
from foliot.model.instance_events import LeaderElected, LeaseLost, WriteFenced
from foliot.model.lease import Lease, Shard
from foliot.planning.definition import compile_definition
from foliot.planning.fire import Fired, Firing, plan_firing
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.leases.leases_sql import require_lease
from foliot.scheduler.shard import ShardScheduler
from foliot.timing.clock import SystemClock, VirtualClock
from tests.conftest import OpenStore
from tests.engine import (
    TTL_S,
    WORKER,
    add,
    add_all,
    every_second,
    make_instance,
    registry,
    running,
    seen,
    until,
)
from tests.ledger import assert_exact
from tests.servers import PostgresServer

SECOND = timedelta(seconds=1)
SHARD = Shard(0, 1)


async def decided(store: SqlStore, schedule_id: UUID) -> int:
    return len(await store.schedules.executions(schedule_id))


async def due_firings(store: SqlStore) -> list[Firing]:
    now = await store.now()
    dues = await store.firing.load(SHARD, until=now, after=None, limit=1000)
    return [plan_firing(due, compile_definition(due.definition, due.schedule_id), now) for due in dues]


async def has_due(store: SqlStore) -> bool:
    return bool(await store.firing.load(SHARD, until=await store.now(), after=None, limit=1))


def leading_shard(instance: Any) -> ShardScheduler:
    assert instance.scheduler is not None
    shard: ShardScheduler = instance.scheduler.shards[0]
    return shard


async def test_a_crash_before_commit_leaves_nothing_and_another_leader_fires(store: SqlStore) -> None:
    schedule = await add(store, every_second("a"))
    standing = await store.leases.take(SHARD, "first", 0.0)
    assert standing.lease is not None
    await until(lambda: has_due(store))
    firings = await due_firings(store)

    class Killed(BaseException):
        """Nobody catches this: as if the process were gone."""

    def kill(*_: object) -> Any:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foliot.scheduler.firing_sql.report", kill)  # the last thing before COMMIT
        with pytest.raises(Killed):
            await store.firing.fire(standing.lease, firings, now=await store.now())
    assert await decided(store, schedule.schedule_id) == 0
    assert (await store.schedules.get(schedule.schedule_id)).next_fire_ts == schedule.next_fire_ts

    second = await store.leases.take(SHARD, "second", -1.0)
    assert second.lease is not None
    fired = await store.firing.fire(second.lease, await due_firings(store), now=await store.now())
    assert len(fired.fired) == 1


async def test_a_hint_that_is_lost_is_made_good_by_polling(database_url: str, store: SqlStore) -> None:
    """The scheduler's process dies after COMMIT: its worker was never told, and finds the row."""
    ran: list[str] = []

    async def note() -> None:
        ran.append("ran")

    tasks = registry(note)
    definition = every_second("a").model_copy(
        update={"target": every_second("x").target.model_copy(update={"name": "note"})}
    )
    await add(store, definition)
    # Two instances with hints of their own: nothing passes between them but the database.
    async with (
        running(database_url, roles=WORKER, tasks=tasks, hints="off"),
        running(database_url, hints="off"),
    ):
        await until(lambda: len(ran) >= 2)


async def test_a_lost_reply_to_commit_is_read_again_by_key(database_url: str, store: SqlStore) -> None:
    schedule = await add(store, every_second("a"))
    instance, recorder = make_instance(database_url)
    lost = 0

    class LosesReplies(FiringStatements):
        async def fire(self, *args: Any, **kwargs: Any) -> Fired:
            nonlocal lost
            fired = await super().fire(*args, **kwargs)
            if lost < 3:
                lost += 1
                raise DatabaseUnreachableError("the reply to COMMIT was lost")
            return fired

    await instance.start()
    try:
        await until(lambda: bool(seen(recorder, LeaderElected)))
        leading_shard(instance).firing._store = LosesReplies(instance.store.database)
        await until(lambda: lost == 3)

        async def went_on() -> bool:
            return await decided(store, schedule.schedule_id) >= 5

        await until(went_on)
    finally:
        await instance.stop()
    assert schedule.next_fire_ts is not None
    assert_exact(await store.schedules.executions(schedule.schedule_id), SECOND, schedule.next_fire_ts)


async def test_two_that_fire_the_same_time_at_once_make_one_row(store: SqlStore) -> None:
    schedules = await add_all(store, [every_second(f"s{number}") for number in range(20)])
    lease = (await store.leases.take(SHARD, "both", 0.0)).lease
    assert lease is not None
    held = lease

    async def all_due() -> bool:
        dues = await store.firing.load(SHARD, until=await store.now(), after=None, limit=100)
        return len(dues) == 20

    await until(all_due)
    firings = await due_firings(store)
    now = await store.now()
    results = await asyncio.gather(*(store.firing.fire(held, firings, now=now) for _ in range(3)))
    assert sum(len(result.fired) for result in results) == 20
    assert sum(len(result.refused) for result in results) == 40
    for schedule, firing in zip(schedules, sorted(firings, key=lambda f: f.due.schedule_id), strict=True):
        assert await decided(store, schedule.schedule_id) == 1
        row = await store.schedules.get(schedule.schedule_id)
        assert firing.next is not None
        assert row.next_fire_ts == firing.next.fire_ts
        assert row.run_count == 1


async def test_a_deposed_leader_that_does_not_know_it_is_fenced_and_counted(
    database_url: str, store: SqlStore
) -> None:
    """Stopped for longer than its lease and woken again: with the trust window taken out, the fence holds."""
    schedule = await add(store, every_second("a"))
    instance, recorder = make_instance(database_url)
    await instance.start()
    try:
        await until(lambda: bool(seen(recorder, LeaderElected)))
        leadership = leading_shard(instance).leadership
        lease = leadership.lease
        assert lease is not None
        leadership._ttl_s = float("inf")  # it trusts its lease for ever
        leadership._heartbeat_s = 3600.0  # it sleeps, and will not learn of its loss by renewing
        leadership.wake.set()
        await until(lambda: leadership._trusted_until == float("inf"))

        async def is_taken() -> bool:
            return (await store.leases.take(SHARD, "other", TTL_S)).lease is not None

        await until(is_taken)
        await until(lambda: bool(seen(recorder, WriteFenced)))
        assert seen(recorder, LeaseLost)[0].reason == "a write was fenced"
    finally:
        await instance.stop()
    assert schedule.next_fire_ts is not None
    assert_exact(await store.schedules.executions(schedule.schedule_id), SECOND, schedule.next_fire_ts)


async def test_an_old_epoch_can_write_nothing(store: SqlStore) -> None:
    schedule = await add(store, every_second("a"))
    old = (await store.leases.take(SHARD, "old", 0.0)).lease
    assert old is not None
    await until(lambda: has_due(store))
    firings = await due_firings(store)
    assert (await store.leases.take(SHARD, "new", -1.0)).lease is not None
    with pytest.raises(FencedError):
        await store.firing.fire(old, firings, now=await store.now())
    with pytest.raises(FencedError):
        await store.upkeep.rescue(Lease(SHARD, old.epoch, "old"), limit=10)
    assert await decided(store, schedule.schedule_id) == 0


@pytest.mark.parametrize("act", ["fire", "rescue", "release_held", "restart_delays", "prune"])
async def test_whatever_a_leader_is_stopped_in_it_does_not_keep_its_successor_waiting(
    postgres_url: str, open_test_store: OpenStore, act: str
) -> None:
    """SIGSTOP in the middle of any transaction under the lease: the database ends it by itself."""
    stopped = await open_test_store(postgres_url, ttl_s=TTL_S)
    other = await open_test_store(postgres_url, ttl_s=60.0)
    lease = (await stopped.leases.take(SHARD, "stopped", 0.0)).lease
    assert lease is not None
    holding = asyncio.Event()

    async def hold(connection: Any, lease: Lease) -> None:
        await require_lease(connection, lease)
        holding.set()
        await asyncio.Event().wait()  # as if the process did not run any more

    now = await stopped.now()
    acts: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "fire": lambda: stopped.firing.fire(lease, [], now=now),
        "rescue": lambda: stopped.upkeep.rescue(lease, limit=1),
        "release_held": lambda: stopped.upkeep.release_held(lease, limit=1),
        "restart_delays": lambda: stopped.upkeep.restart_delays(lease, limit=1),
        "prune": lambda: stopped.upkeep.prune(lease, before=now, limit=1),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foliot.scheduler.firing_sql.require_lease", hold)
        patch.setattr("foliot.scheduler.housekeeping_sql.require_lease", hold)
        task = asyncio.create_task(acts[act]())
        async with asyncio.timeout(30):
            await holding.wait()
            standing = await other.leases.take(SHARD, "other", -1.0)
    assert standing.lease is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_leader_stopped_while_it_prepares_a_statement_does_not_block_its_successor(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    """Then PostgreSQL counts it as neither idle nor running, and none of its limits ends it."""
    other = await open_test_store(postgres_url, ttl_s=TTL_S)
    assert (await other.leases.take(SHARD, "stopped", 0.0)).lease is not None
    stopped = await asyncpg.connect(postgres_url)
    await stopped.execute("BEGIN")
    for name in ("idle_in_transaction_session_timeout", "statement_timeout"):
        await stopped.execute(f"SET LOCAL {name} = {int(TTL_S * 800)}")
    await stopped.execute("SELECT 1 FROM scheduler_lock_t FOR KEY SHARE")
    await stopped.prepare("SELECT $1::int")  # and nothing more is heard of it

    async def is_taken() -> bool:
        try:
            return (await other.leases.take(SHARD, "other", -1.0)).lease is not None
        except (DatabaseUnreachableError, DBAPIError):
            return False

    try:
        await until(is_taken)
    finally:
        stopped.terminate()


async def test_a_leader_whose_event_loop_was_blocked_steps_down_by_itself(database_url: str) -> None:
    instance, recorder = make_instance(database_url)
    await instance.start()
    try:
        await until(lambda: bool(seen(recorder, LeaderElected)))
        before = seen(recorder, LeaderElected)[0].epoch
        time.sleep(2 * TTL_S)  # noqa: ASYNC251 - the fault itself: a handler that blocks the event loop
        assert leading_shard(instance).leadership.lease is None
        assert seen(recorder, LeaseLost)[0].reason == "it could not be renewed in time"
        await until(lambda: len(seen(recorder, LeaderElected)) == 2)
        assert seen(recorder, LeaderElected)[1].epoch > before
    finally:
        await instance.stop()


async def test_a_worker_that_dies_between_claim_and_renewal_is_made_good(
    database_url: str, store: SqlStore
) -> None:
    schedule = await add(store, every_second("a", max_runs=1, retry={"initial_delay_seconds": 0.1}))
    async with running(database_url):
        claims: list[Any] = []

        async def claimed_by_the_dead() -> bool:
            queues = await store.work.queues(None)
            claims.extend(await store.work.claim("dead", queues, limit=1, lease_s=0.3))
            return bool(claims)

        await until(claimed_by_the_dead)
        async with running(database_url, roles=WORKER):

            async def is_done() -> bool:
                (row,) = await store.schedules.executions(schedule.schedule_id)
                return row.status is Status.SUCCESS

            await until(is_done)
    (row,) = await store.schedules.executions(schedule.schedule_id)
    assert row.attempt == 2
    assert row.worker_id != "dead"


class WrongClock(SystemClock):
    """A wall clock that is off, and jumps about."""

    def __init__(self) -> None:
        self.off = timedelta(minutes=10)

    def now(self) -> datetime:
        return super().now() + self.off


async def test_a_node_whose_clock_is_wrong_and_jumps_fires_neither_early_nor_late(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    schedule = await add(store, every_second("a"))
    clock = WrongClock()
    # Far less than the clock is off, and long enough that a busy machine does not make the leader lose it.
    ttl_s = 15.0
    async with (
        running(postgres_url, clock=clock, lease_ttl_seconds=ttl_s) as (_, leading),
        running(postgres_url, clock=SystemClock(), lease_ttl_seconds=ttl_s) as (_, following),
    ):
        for off_minutes in (10, -10, 60 * 24, 0):
            clock.off = timedelta(minutes=off_minutes)
            count = await decided(store, schedule.schedule_id)

            async def went_on(count: int = count) -> bool:
                return await decided(store, schedule.schedule_id) >= count + 2

            await until(went_on)
        elections = seen(leading, LeaderElected) + seen(following, LeaderElected)
        assert len(elections) == 1, "a clock that lies must not change who leads"
    rows = await store.schedules.executions(schedule.schedule_id)
    assert schedule.next_fire_ts is not None
    assert_exact(rows, SECOND, schedule.next_fire_ts)
    assert all(row.created_ts >= row.fire_ts for row in rows), "fired early by the database's clock"
    assert all(row.status is Status.PENDING or row.reason == "overlap" for row in rows)


async def test_the_loops_survive_a_restart_of_postgres_and_killed_backends(
    postgres_server: PostgresServer, postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    policy = {"policy": "allow"}
    schedules = await add_all(store, [every_second(f"s{n}", overlap=policy) for n in range(20)])
    async with (
        running(postgres_url) as (_, recorder),
        running(postgres_url, roles=WORKER),
    ):
        await until(lambda: bool(seen(recorder, LeaderElected)))
        for fault in ("terminate", "restart", "terminate"):
            before = await decided(store, schedules[0].schedule_id)
            if fault == "restart":
                await asyncio.to_thread(postgres_server.stop)
                await asyncio.to_thread(postgres_server.start)
            else:
                await _terminate_backends(postgres_server, postgres_url)

            async def went_on(before: int = before) -> bool:
                try:
                    return await decided(store, schedules[0].schedule_id) >= before + 3
                except (DatabaseUnreachableError, OSError):
                    return False

            await until(went_on, within_s=60)
    for schedule in schedules:
        rows = await store.schedules.executions(schedule.schedule_id)
        assert schedule.next_fire_ts is not None
        assert_exact(rows, SECOND, schedule.next_fire_ts)


async def _terminate_backends(server: PostgresServer, url: str) -> None:
    name = url.rpartition("/")[2]
    connection = await asyncpg.connect(server.url("postgres"))
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name
    )
    await connection.close()


async def test_a_pool_that_is_used_up_never_delays_a_heartbeat(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    async with running(postgres_url, roles=ENGINE) as (instance, recorder):
        await until(lambda: bool(seen(recorder, LeaderElected)))

        async def hold(pool: Pool) -> None:
            async with instance.store.database.read(pool) as connection:
                await connection.execute(text(f"SELECT pg_sleep({4 * TTL_S})"))

        sizes = instance.plan.settings.pools
        holders = [
            asyncio.create_task(hold(pool)) for pool in (Pool.API, Pool.WORK) for _ in range(sizes[pool] * 2)
        ]
        standing = await store.leases.take(SHARD, "watcher", 3600.0)
        started = time.monotonic()
        while time.monotonic() - started < 3 * TTL_S:
            now = await store.leases.take(SHARD, "watcher", TTL_S)
            assert now.lease is None, "the heartbeat stopped"
            assert now.epoch == standing.epoch
            await asyncio.sleep(0.1)
        assert not seen(recorder, LeaseLost)
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)


async def test_one_locked_schedule_does_not_hold_up_the_others(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    policy = {"policy": "allow"}
    schedules = await add_all(store, [every_second(f"s{n}", overlap=policy) for n in range(20)])
    locked, *others = schedules
    async with running(postgres_url) as (_, recorder):
        await until(lambda: bool(seen(recorder, LeaderElected)))
        connection = await asyncpg.connect(postgres_url)
        async with connection.transaction():
            await connection.execute(
                "SELECT 1 FROM schedule_t WHERE schedule_id = $1 FOR UPDATE", locked.schedule_id
            )
            before = await decided(store, others[0].schedule_id)

            async def others_went_on() -> bool:
                return await decided(store, others[0].schedule_id) >= before + 4

            await until(others_went_on)
            held = await decided(store, locked.schedule_id)
        await connection.close()

        async def it_went_on() -> bool:
            return await decided(store, locked.schedule_id) > held

        await until(it_went_on)
    for schedule in schedules:
        assert schedule.next_fire_ts is not None
        assert_exact(await store.schedules.executions(schedule.schedule_id), SECOND, schedule.next_fire_ts)


async def test_a_heartbeat_from_the_future_does_not_keep_the_lease_for_ever(
    sqlite_url: str, open_test_store: OpenStore
) -> None:
    """The leader is gone and the database's clock was set back: somebody must be able to lead."""
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = await open_test_store(sqlite_url, clock=clock)
    assert (await store.leases.take(SHARD, "gone", TTL_S)).lease is not None
    clock.jump(-3600)
    standing = await store.leases.take(SHARD, "next", TTL_S)
    assert standing.lease is not None
    assert standing.lease.epoch == 2
