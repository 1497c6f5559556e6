"""Housekeeping: one duty, schedule or step of a clock never stops the others."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from foliot.db.hints import LocalHints
from foliot.instance.store import SqlStore
from foliot.model.execution import Status
from foliot.model.instance_events import LeaderElected, LeaseLost
from foliot.model.policy import Overlap
from foliot.scheduler.housekeeping_sql import Upkeep
from foliot.scheduler.janitor import Duty, HousekeepingOptions, Janitor
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.leases.leadership import Leadership
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock
from tests.conformance.suites.scene import LONG, STALE, WHOLE, Scene
from tests.conftest import OpenStore
from tests.engine import running, seen, until

CROWD = 15_000
"""When a look cost by the square of their number, it took minutes."""
PATIENT = {"lease_ttl_seconds": 15, "heartbeat_seconds": 3, "worker_lease_seconds": 60}
"""A machine that is busy elsewhere does not lose the lease by itself."""
WORKER_LEASE_S = 15.0
YEARLY = {"kind": "cron", "expression": "0 0 1 1 *"}


def scene_of(store: SqlStore) -> Scene:
    return Scene(store, open_another=None)  # type: ignore[arg-type]


async def wait_for(store: SqlStore, execution_id: UUID, *statuses: Status) -> None:
    async def has_status() -> bool:
        return (await store.executions.get(execution_id)).status in statuses

    await until(has_status)


async def is_ready(store: SqlStore, execution_id: UUID) -> bool:
    return (await store.executions.get(execution_id)).ready_ts is not None


async def lose(scene: Scene) -> UUID:
    """An execution whose worker has vanished."""
    await scene.trigger(await scene.add("lost", trigger=YEARLY, delivery="at_most_once"))
    return (await scene.claim_one("gone", lease_s=STALE)).execution_id


async def hold_one(scene: Scene, name: str = "held") -> UUID:
    """A held execution that may run now."""
    # Its own times would come before a manual run.
    schedule = await scene.add(name, trigger=YEARLY, overlap={"policy": "queue"})
    first, held = await scene.trigger(schedule), await scene.trigger(schedule)
    [claim] = await scene.claim()
    assert claim.execution_id == first
    await scene.settle(claim, Status.SUCCESS)
    return held


async def hang(_upkeep: Upkeep, *_arguments: Any, **_options: Any) -> None:
    await asyncio.Event().wait()


async def fail(_upkeep: Upkeep, *_arguments: Any, **_options: Any) -> None:
    raise RuntimeError("out of order")


@pytest.mark.parametrize("trouble", [hang, fail])
@pytest.mark.parametrize("duty", ["release_held", "restart_delays", "prune", "prune_events", "rescue"])
async def test_a_duty_that_hangs_or_fails_delays_no_other(
    store: SqlStore, database_url: str, monkeypatch: pytest.MonkeyPatch, duty: str, trouble: Any
) -> None:
    scene = scene_of(store)
    held, lost = await hold_one(scene), await lose(scene)
    monkeypatch.setattr(Upkeep, duty, trouble)
    async with running(database_url, worker_lease_seconds=60):
        if duty != "rescue":
            await wait_for(store, lost, Status.UNKNOWN)
        if duty != "release_held":
            await until(lambda: is_ready(store, held))


async def test_thousands_of_held_executions_of_one_schedule_stop_nothing(
    store: SqlStore, database_url: str
) -> None:
    scene = scene_of(store)
    crowded = await scene.add("crowded", trigger=YEARLY, overlap={"policy": "queue"})
    await scene.trigger(crowded)
    blocking = await scene.claim_one(lease_s=LONG)
    await scene.hold(crowded, CROWD)
    held, lost = await hold_one(scene), await lose(scene)
    async with running(database_url, **PATIENT) as (_, recorder):
        await wait_for(store, lost, Status.UNKNOWN)
        await until(lambda: is_ready(store, held))
        assert await scene.claim(limit=1, queues=["default"]) != []
        # They drain as there is room.
        await scene.settle(blocking, Status.SUCCESS)

        async def next_one_is_ready() -> bool:
            claims = await scene.claim(limit=1)
            return any(claim.schedule_id == crowded.schedule_id for claim in claims)

        await until(next_one_is_ready)
        assert len(seen(recorder, LeaderElected)) == 1
        assert not seen(recorder, LeaseLost)


# --- the database's clock is set forward --------------------------------------------------------------


class Stepped:
    """A leader's housekeeping on a database whose clock can be set."""

    def __init__(self, store: SqlStore, clock: VirtualClock) -> None:
        self.store, self.clock, self.scene = store, clock, scene_of(store)
        # The leader's machine keeps its own time.
        self.machine = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
        self.cluster = ClusterClock(self.machine)
        leases = DatabaseLeases(store.leases, "leader", LONG)
        self._leading = Leadership(WHOLE, leases, self.cluster, Recorder(), ttl_s=LONG, heartbeat_s=1.0)
        janitor = Janitor(
            self._leading,
            store.upkeep,
            store.registry,
            self.cluster,
            LocalHints(),
            Recorder(),
            HousekeepingOptions(every_s=1.0, retention_days=1.0, worker_lease_s=WORKER_LEASE_S),
        )
        [self._rescue] = [duty for duty in janitor.duties if duty.name == "janitor.rescue"]

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.machine.advance(seconds)

    async def beat(self) -> None:
        """A heartbeat: the leader reads the database's clock."""
        await self._leading.step()

    async def rescue(self) -> float | None:
        duty: Duty = self._rescue
        return await duty.step()

    async def status(self, execution_id: UUID) -> Status:
        return (await self.store.executions.get(execution_id)).status


@pytest.fixture
async def stepped(sqlite_url: str, open_test_store: OpenStore) -> Stepped:
    clock = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    return Stepped(await open_test_store(sqlite_url, clock=clock), clock)


async def test_a_step_of_the_databases_clock_declares_nothing_lost_that_is_renewed(stepped: Stepped) -> None:
    scene = stepped.scene
    schedule = await scene.add(overlap={"policy": "allow"}, delivery="at_most_once")
    for _ in range(2):
        await scene.trigger(schedule)
    alive, dead = await scene.claim(lease_s=WORKER_LEASE_S)
    await stepped.beat()
    stepped.pass_time(1)
    stepped.clock.jump(60)
    # Before the step was noticed,
    await stepped.rescue()
    assert await stepped.status(alive.execution_id) is Status.RUNNING
    # and after: now for as long as a worker's lease.
    await stepped.beat()
    assert await stepped.rescue() is not None
    assert await stepped.status(alive.execution_id) is Status.RUNNING
    stepped.pass_time(WORKER_LEASE_S / 3)
    await stepped.store.work.renew("worker", [alive], WORKER_LEASE_S)
    stepped.pass_time(WORKER_LEASE_S / 3)
    await stepped.beat()
    await stepped.rescue()
    assert await stepped.status(dead.execution_id) is Status.RUNNING
    await stepped.store.work.renew("worker", [alive], WORKER_LEASE_S)
    stepped.pass_time(WORKER_LEASE_S / 3)
    await stepped.beat()
    await stepped.rescue()
    # Then what nobody renewed is lost, as ever.
    assert await stepped.status(alive.execution_id) is Status.RUNNING
    assert await stepped.status(dead.execution_id) is Status.UNKNOWN


async def test_without_a_step_a_lost_execution_is_rescued_when_its_lease_ends(stepped: Stepped) -> None:
    scene = stepped.scene
    await scene.trigger(await scene.add(delivery="at_most_once"))
    claim = await scene.claim_one(lease_s=WORKER_LEASE_S)
    await stepped.beat()
    for _ in range(int(WORKER_LEASE_S)):
        await stepped.rescue()
        assert await stepped.status(claim.execution_id) is Status.RUNNING
        stepped.pass_time(1)
        await stepped.beat()
    stepped.pass_time(1)
    await stepped.rescue()
    assert await stepped.status(claim.execution_id) is Status.UNKNOWN


def test_the_default_of_max_queued_is_a_thousand() -> None:
    assert Overlap().max_queued == 1000
