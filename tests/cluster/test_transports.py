"""Real processes behind real brokers: workers and the broker are killed under load, and nothing is lost."""

import asyncio
import contextlib
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.model.execution import FINAL, Status
from foliot.model.policy import Priority
from tests.brokers import Broker, GivenKafka, MockKafka
from tests.cluster.scene import NEVER, WITHIN_S, Scene, tells
from tests.conformance.transports import wait_until_kept
from tests.engine import add, spec, until

pytestmark = pytest.mark.cluster

EVERY_SECOND = {"kind": "interval", "seconds": 1}
NAP = {"kind": "function", "name": "nap", "args": {"seconds": 0.05}}
RUNS = 5
LANES = [f"foliot.default.{priority}" for priority in Priority]
PACE_S = 0.04


@pytest.fixture(params=["redis", "nats", "rabbitmq", "kafka"])
def broker(request: pytest.FixtureRequest) -> Broker:
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    if isinstance(found, GivenKafka | MockKafka):
        pytest.skip("it can't be stopped")
    return found


async def counts(scene: Scene) -> Counter[Status]:
    statement = select(execution_t.c.status, func.count()).group_by(execution_t.c.status)
    async with scene.store.database.read(Pool.API) as connection:
        return Counter({Status(status): count for status, count in await connection.execute(statement)})


class Load:
    """Schedules of every priority, that are triggered again and again until it is enough."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._is_enough = asyncio.Event()
        self.triggered: set[UUID] = set()

    async def run(self) -> None:
        retry = {"max_attempts": 10, "initial_delay_seconds": 0.1, "max_delay_seconds": 0.1}
        fields: dict[str, Any] = {"overlap": {"policy": "allow"}, "target": NAP, "retry": retry}
        store, schedules = self._scene.store, []
        for each in Priority:
            schedules.append(await add(store, spec(f"by-hand-{each}", NEVER, priority=each, **fields)))
            await add(store, spec(f"fired-{each}", EVERY_SECOND, priority=each, max_runs=RUNS, **fields))
        while not self._is_enough.is_set():
            for schedule in schedules:
                self.triggered.add(await self._scene.trigger(schedule))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PACE_S):
                    await self._is_enough.wait()

    def enough(self) -> None:
        self._is_enough.set()


async def test_every_execution_is_settled_once_whatever_is_killed(scene: Scene, broker: Broker) -> None:
    """A worker in the middle of its work, then the broker, which comes back."""
    over = {"FOLIOT_TRANSPORT": broker.url}
    scheduler = scene.scheduler(**over)
    doomed, _other = scene.worker(**over), scene.worker(**over)
    await tells(scheduler, "leader_elected")
    load = Load(scene)
    async with asyncio.TaskGroup() as group:
        group.create_task(load.run())
        await scene.more_begun(20)
        doomed.kill()
        await scene.more_begun(20)
        # In threads: meanwhile others have transactions open, which the database ends if nobody goes on.
        await asyncio.to_thread(wait_until_kept, broker, *LANES)
        await asyncio.to_thread(broker.stop)
        try:
            # The other worker sees that it is gone, and looks for itself.
            await scene.more_begun(20)
        finally:
            await asyncio.to_thread(broker.start)
        scene.worker(**over)
        await scene.more_begun(20)
        load.enough()

    async def all_settled() -> bool:
        found = await counts(scene)
        return sum(found.values()) >= len(load.triggered) + 3 * RUNS and set(found) <= FINAL

    await until(all_settled, within_s=WITHIN_S)
    assert await counts(scene) == {Status.SUCCESS: len(load.triggered) + 3 * RUNS}
    # Only what the killed worker had begun was begun again, as its next attempt.
    begun: Counter[tuple[UUID, int]] = Counter((each, attempt) for each, attempt, _ in scene.all_lines())
    assert set(begun.values()) == {1}
    assert load.triggered <= {each for each, _ in begun}
