"""Outcomes that nobody was told, writes that come too late, and nodes cut off from the database.

A proxy between a node and PostgreSQL loses or holds the very reply that matters.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from foliot import Fire
from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.instance.spec import ENGINE
from foliot.instance.store import SqlStore
from foliot.model.event import ExecutionsSettled
from foliot.model.execution import Execution, Status
from foliot.model.schedule import Schedule
from tests.chaos.proxy import Proxy, Way
from tests.chaos.staleness import FIRING, write_stale
from tests.cluster.scene import LEASE_S, WITHIN_S, Scene, tells
from tests.conftest import OpenStore
from tests.engine import TTL_S, WORKER, add, add_all, every_second, registry, running, seen, until
from tests.ledger import assert_exact

pytestmark = pytest.mark.cluster

SECOND = timedelta(seconds=1)
DEFAULT_TTL_S = 3.0
SETTLING = "UPDATE execution_t"
MADE_GOOD = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}
TIMES = {
    "FOLIOT_LEASE_TTL_SECONDS": str(TTL_S),
    "FOLIOT_HEARTBEAT_SECONDS": str(TTL_S / 4),
}


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


async def rows_of(store: SqlStore, schedule: Schedule) -> list[Execution]:
    return await store.schedules.executions(schedule.schedule_id, limit=10_000)


async def more_decided(store: SqlStore, schedule: Schedule, count: int) -> None:
    """Wait until so many more times of it are decided."""
    before = len(await rows_of(store, schedule))

    async def are_enough() -> bool:
        return len(await rows_of(store, schedule)) >= before + count

    await until(are_enough, within_s=WITHIN_S)


async def is_exact(store: SqlStore, schedule: Schedule) -> None:
    assert schedule.next_fire_ts is not None
    assert_exact(await rows_of(store, schedule), SECOND, schedule.next_fire_ts)


# --- replies that are lost ------------------------------------------------------------------------


async def test_whoever_is_not_told_that_it_has_fired_or_settled_does_neither_twice(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    """Fault 3, for the scheduler and for the worker."""
    store = await open_test_store(postgres_url)
    begun: Counter[str] = Counter()

    async def noop(fire: Fire) -> None:
        begun[str(fire.execution_id)] += 1

    schedules = await add_all(store, [every_second(f"s{number}", **MADE_GOOD) for number in range(10)])
    async with proxied(postgres_url) as to_scheduler, proxied(postgres_url) as to_worker:
        async with (
            running(to_scheduler.url),
            running(to_worker.url, roles=WORKER, tasks=registry(noop)) as (_, worker),
        ):
            for _ in range(3):
                for proxy, words in ((to_scheduler, FIRING), (to_worker, SETTLING)):
                    catch = proxy.lose_commit(of=words)
                    await until(catch.caught.is_set, within_s=WITHIN_S)
                await more_decided(store, schedules[0], 2)
        assert (to_scheduler.lost_commits, to_worker.lost_commits) == (3, 3)
    # Settled again, and told that it was: what the database has settled stays as it is.
    assert [each for event in seen(worker, ExecutionsSettled) for each in event.refused]
    for schedule in schedules:
        await is_exact(store, schedule)
        for row in await rows_of(store, schedule):
            # Of what was fired last, something may not have been begun when the worker stopped.
            assert begun[str(row.execution_id)] <= 1
            assert row.status in (Status.SUCCESS, Status.PENDING), (row.status, row.error)
            assert row.attempt <= 1 or row.status is Status.PENDING


# --- writes that come too late --------------------------------------------------------------------


async def lease_row(scene: Scene) -> tuple[str, int, float]:
    """Who leads, under which epoch, and how long ago it said so."""
    async with scene.store.database.read(Pool.LEASE) as connection:
        row = (await connection.execute(select(scheduler_lock_t))).one()
    return row.instance_id, row.epoch, (await scene.store.now() - row.last_heartbeat).total_seconds()


async def test_a_leader_that_goes_on_firing_when_another_leads_is_fenced_and_counted(scene: Scene) -> None:
    """Fault 5: its transaction has begun while it led, and it knows of nothing when it goes on with it."""
    schedules = []
    for number in range(4):
        # Due at four times of each second, so that one comes in the short time between silence and takeover.
        schedules.append(await add(scene.store, every_second(f"ticks {number}", **MADE_GOOD)))
        await asyncio.sleep(0.25)
    schedule = schedules[-1]
    async with proxied(scene.url) as proxy:
        leader = scene.scheduler(FOLIOT_DATABASE_URL=proxy.url)
        await more_decided(scene.store, schedule, 1)
        follower = scene.scheduler()
        await tells(follower, "instance_started")
        deposed, epoch, _ = await lease_row(scene)
        # Instance ids are host-pid-random.
        assert deposed.split("-")[-2] == str(leader.pid)

        async def silent_s() -> float:
            return (await lease_row(scene))[2]

        async def is_taken() -> bool:
            return (await lease_row(scene))[1] > epoch

        await write_stale(proxy, DEFAULT_TTL_S, silent_s, is_taken)
        fenced = await tells(leader, "write_fenced")
        assert {line["epoch"] for line in fenced} == {epoch}
        await more_decided(scene.store, schedule, 2)
        for node in (leader, follower):
            # The proxy has to go on while it stops.
            assert await asyncio.to_thread(node.stop) == 0, node.told()[-2000:]
    for each in schedules:
        await is_exact(scene.store, each)


async def test_what_a_leader_fired_and_did_not_live_to_tell_is_found_by_its_worker(scene: Scene) -> None:
    """Fault 2: killed when the database has committed, before the reply and before any hint."""
    target = {"kind": "function", "name": "nap"}
    schedule = await add(scene.store, every_second("ticks", target=target, **MADE_GOOD))
    async with proxied(scene.url) as proxy:
        # Held before its first firing: what is in the ledger then is what nobody was told of.
        catch = proxy.hold_commit(of=FIRING)
        leader = scene.scheduler(FOLIOT_DATABASE_URL=proxy.url, **TIMES)
        worker = scene.worker()
        await until(catch.caught.is_set, within_s=WITHIN_S)
        leader.kill()
        rows = await rows_of(scene.store, schedule)
        assert rows
        # Nobody but the worker is left: it finds them by looking.
        for row in rows:
            await scene.stands(row.execution_id, Status.SUCCESS)
            assert len(scene.lines(row.execution_id)) == 1
        assert worker.is_running
        follower = scene.scheduler(**TIMES)
        await more_decided(scene.store, schedule, 2)
        assert await asyncio.to_thread(follower.stop) == 0, follower.told()[-2000:]
    await is_exact(scene.store, schedule)


# --- cut off --------------------------------------------------------------------------------------


async def test_a_node_cut_off_again_and_again_in_every_way_recovers_by_itself(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    """Fault 14. Each time for longer than its leases last, so that it has lost them when it is back."""
    store = await open_test_store(postgres_url)
    schedule = await add(store, every_second("ticks", **MADE_GOOD))
    async with proxied(postgres_url) as proxy:

        async def cut() -> None:
            proxy.cut()

        async def hold(*ways: Way) -> None:
            proxy.hold(*ways)

        faults: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("refused", proxy.refuse),
            ("nothing gets out", lambda: hold(Way.REQUESTS)),
            ("nothing comes back", lambda: hold(Way.REPLIES)),
            ("silence", lambda: hold(*Way)),
            ("reset", cut),
        ]
        async with running(proxy.url, roles=ENGINE):
            await more_decided(store, schedule, 1)
            for name, fault in faults:
                began = await store.now()
                await fault()

                async def is_over(began: datetime = began) -> bool:
                    return (await store.now() - began).total_seconds() > max(TTL_S, LEASE_S)

                await until(is_over, within_s=WITHIN_S)
                proxy.heal()
                await proxy.accept()
                try:
                    await more_decided(store, schedule, 1)
                except TimeoutError:
                    pytest.fail(f"did not recover from: {name}")

            async def has_caught_up() -> bool:
                return all(row.status is Status.SUCCESS for row in (await rows_of(store, schedule))[2:])

            await until(has_caught_up, within_s=WITHIN_S)
    await is_exact(store, schedule)
