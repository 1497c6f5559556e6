"""Overlap is exact while everyone who may add work to a schedule does so at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text

from foliot.db.dialect import Pool
from foliot.db.tables.executions import IS_OPEN, execution_t
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim, Settlement
from foliot.model.backfill import Backfill, BackfillState
from foliot.model.execution import Status, TriggeredBy
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from tests.conformance.suites.scene import Scene
from tests.conformance.suites.store_backfill import plan
from tests.conftest import OpenStore

MAX_INSTANCES = 2
MANUAL_RUNS = 10
MINUTE = timedelta(minutes=1)
BACKFILLED = 30 * MINUTE
OVERDUE = 20 * MINUTE


class Race:
    """One schedule that may have two executions at once, and all who would give it more."""

    def __init__(self, scene: Scene, schedule: Schedule, backfill: Backfill, lease: Lease) -> None:
        self.max_seen = 0
        self.looks = 0
        self.retries = 0
        self.triggered: list[UUID] = []
        self._scene = scene
        self._schedule = schedule
        self._backfill = backfill
        self._lease = lease
        self._adding = 0

    async def run(self, stores: list[SqlStore]) -> None:
        one, two, three, four, five, six, seven, eight = stores
        async with asyncio.TaskGroup() as group:
            for adding in (self._fire(one), self._trigger(two), self._trigger(three), self._fill_in(four)):
                self._adding += 1
                group.create_task(self._counted(adding))
            for act in (
                partial(self._work, five),
                partial(self._work, six),
                partial(self._release, seven),
                partial(self._retry, eight),
                self._look,
            ):
                group.create_task(self._repeat(act))

    async def _counted(self, adding: Coroutine[Any, Any, None]) -> None:
        await adding
        self._adding -= 1

    async def _repeat(self, act: Callable[[], Awaitable[None]]) -> None:
        while (
            self._adding or await self._count(text(IS_OPEN)) or await self._count(text("status = 'failed'"))
        ):
            await act()

    # --- those who add ----------------------------------------------------------------------------

    async def _fire(self, store: SqlStore) -> None:
        mine = Scene(store, self._scene.open_another)
        now = await mine.now()
        while _next(await mine.get(self._schedule)) <= now:
            await mine.fire(self._lease, self._schedule)

    async def _trigger(self, store: SqlStore) -> None:
        for _ in range(MANUAL_RUNS):
            self.triggered.append(await self._scene.trigger(self._schedule, store))

    async def _fill_in(self, store: SqlStore) -> None:
        backfill_id = self._backfill.backfill_id
        while (await store.backfills.get(backfill_id)).state is not BackfillState.DONE:
            await store.backfills.step(self._lease, backfill_id, plan, limit=4, max_open=10)

    async def _retry(self, store: SqlStore) -> None:
        """Whatever failed is added once more."""
        failed = select(execution_t.c.execution_id).where(execution_t.c.status == Status.FAILED.value)
        for [execution_id] in await self._scene.rows(failed):
            await store.executions.retry(execution_id, author=Author("ann"))
            self.retries += 1

    # --- those who take, and who looks ------------------------------------------------------------

    async def _work(self, store: SqlStore) -> None:
        for claim in await self._scene.claim(store=store):
            status = Status.FAILED if claim.attempt == 1 else Status.SUCCESS
            await store.work.settle("worker", [_ended(claim, status)])

    async def _release(self, store: SqlStore) -> None:
        await store.upkeep.release_held(self._lease, limit=100)

    async def _look(self) -> None:
        self.looks += 1
        self.max_seen = max(self.max_seen, await self._count(text(f"{IS_OPEN} AND due_by_ts IS NOT NULL")))

    async def _count(self, condition: Any) -> int:
        statement = select(func.count()).select_from(execution_t).where(condition)
        async with self._scene.store.database.read(Pool.LEASE) as connection:
            return int((await connection.execute(statement)).scalar_one())


def _next(schedule: Schedule) -> datetime:
    assert schedule.next_fire_ts is not None
    return schedule.next_fire_ts


async def _scene(url: str, open_test_store: OpenStore) -> Scene:
    async def open_another() -> SqlStore:
        return await open_test_store(url)

    return Scene(await open_another(), open_another)


async def _add(scene: Scene) -> Schedule:
    """A schedule that is overdue since a while, and catches up."""
    return await scene.add(
        trigger={"kind": "cron", "expression": "* * * * *"},
        age_s=OVERDUE.total_seconds(),
        overlap={"policy": "queue", "max_instances": MAX_INSTANCES},
        misfire={"policy": "fire_all"},
    )


async def _request(scene: Scene, schedule: Schedule) -> Backfill:
    to_ts = (await scene.now()).replace(second=0, microsecond=0)
    return await scene.store.backfills.create(
        schedule.schedule_id, to_ts - BACKFILLED, to_ts, author=Author("ann")
    )


async def _end_all(scene: Scene, lease: Lease) -> UUID:
    """Let everything run; one ends badly, and is told."""
    ended: list[UUID] = []
    while claims := await scene.claim():
        await scene.store.work.settle("worker", [_ended(claim, Status.SUCCESS) for claim in claims[1:]])
        await scene.settle(claims[0], Status.SUCCESS if ended else Status.FAILED)
        ended += [claim.execution_id for claim in claims]
        await scene.store.upkeep.release_held(lease, limit=10)
    return ended[0]


def _ended(claim: Claim, status: Status) -> Settlement:
    return Settlement(claim, status, status)


async def test_of_all_who_add_to_an_idle_schedule_at_once_only_as_many_as_it_allows_may_run(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    scene = await _scene(postgres_url, open_test_store)
    schedule = await _add(scene)
    backfill = await _request(scene, schedule)
    lease = await scene.lead()
    one, two, three, four, five = await scene.stores(5)
    await scene.trigger(schedule)
    failed = await _end_all(scene, lease)
    for _ in range(10):
        firings = await scene.plan(schedule)
        await asyncio.gather(
            one.firing.fire(lease, firings, now=await scene.now()),
            scene.trigger(schedule, two),
            scene.trigger(schedule, three),
            four.backfills.step(lease, backfill.backfill_id, plan, limit=3, max_open=200),
            five.executions.retry(failed, author=Author("ann")),
        )
        rows = await scene.store.schedules.executions(schedule.schedule_id)
        ready = [row for row in rows if row.status is Status.PENDING and row.due_by_ts is not None]
        assert len(ready) == MAX_INSTANCES
        failed = await _end_all(scene, lease)


async def test_never_more_than_the_limit_run_while_fires_triggers_backfills_and_retries_race(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    scene = await _scene(postgres_url, open_test_store)
    schedule = await _add(scene)
    backfill = await _request(scene, schedule)
    race = Race(scene, schedule, backfill, await scene.lead())
    async with asyncio.timeout(60):
        await race.run(await scene.stores(8))

    assert race.max_seen == MAX_INSTANCES
    assert race.looks > 10
    rows = await scene.store.schedules.executions(schedule.schedule_id, limit=10_000)
    assert {(row.status, row.attempt) for row in rows} == {(Status.SUCCESS, 2)}
    assert race.retries == len(rows)
    by_kind = {kind: [row for row in rows if row.triggered_by is kind] for kind in TriggeredBy}
    assert {row.execution_id for row in by_kind[TriggeredBy.API]} == set(race.triggered)
    assert len(race.triggered) == 2 * MANUAL_RUNS
    assert [row.fire_ts for row in by_kind[TriggeredBy.BACKFILL]] == [
        backfill.to_ts - number * MINUTE for number in range(1, 31)
    ]
    scheduled = [row.fire_ts for row in by_kind[TriggeredBy.SCHEDULER]][::-1]
    assert scheduled == [_next(schedule) + number * MINUTE for number in range(len(scheduled))]
    assert len(scheduled) >= 20
