"""Executions of a priority that only a newer version knows: they stop nothing, and count as `medium`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import delete, update
from tests.conformance.suites.scene import SOMEBODY, STALE, Scene

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_version_t
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.policy import Priority
from foliot.scheduler.measures_sql import Measures

MEDIUM_SLA = timedelta(seconds=Priority.MEDIUM.sla_s)
ALLOW = {"policy": "allow"}


async def make_unknown(scene: Scene, execution_ids: Sequence[UUID]) -> None:
    named = execution_t.c.execution_id.in_(execution_ids)
    await scene.execute(update(execution_t).where(named).values(priority="urgent"))


async def test_held_executions_are_released_with_the_others(scene: Scene) -> None:
    newer, plain = [await scene.add(name, overlap={"policy": "queue"}) for name in ("newer", "plain")]
    await scene.hold(newer, 1)
    await scene.hold(plain, 1)
    [held] = await scene.executions(newer)
    await make_unknown(scene, [held.execution_id])
    assert await scene.release(await scene.lead()) == 2
    for schedule in (newer, plain):
        [row] = await scene.executions(schedule)
        assert row.ready_ts is not None
        assert row.due_by_ts is not None
        assert row.priority is Priority.MEDIUM
        # PostgreSQL reads its clock once for each of the two columns.
        assert abs(row.due_by_ts - row.ready_ts - MEDIUM_SLA) < timedelta(seconds=1)


@pytest.mark.parametrize("why", ["it was to be cancelled", "its version is gone"])
async def test_lost_executions_are_rescued_with_the_others(scene: Scene, why: str) -> None:
    ids = []
    for name in ("newer", "plain"):
        schedule = await scene.add(name)
        await scene.trigger(schedule)
        ids.append((await scene.claim_one(lease_s=STALE)).execution_id)
    newer, plain = ids
    await make_unknown(scene, [newer])
    named = execution_t.c.execution_id == newer
    if why == "it was to be cancelled":
        await scene.execute(update(execution_t).where(named).values(cancel_requested=True))
    else:
        schedule_id = (await scene.execution(newer)).schedule_id
        await scene.execute(delete(schedule_version_t).where(schedule_version_t.c.schedule_id == schedule_id))
    rescued = await scene.rescue(await scene.lead())
    assert set(rescued) == {newer, plain}
    assert rescued[plain] is Status.RETRYING


async def test_executions_are_claimed_and_retried_with_the_others(scene: Scene) -> None:
    schedule = await scene.add(overlap=ALLOW)
    newer, plain = [await scene.trigger(schedule) for _ in range(2)]
    await make_unknown(scene, [newer])
    claims = await scene.claim()
    assert {claim.execution_id for claim in claims} == {newer, plain}
    assert {claim.priority for claim in claims} == {Priority.MEDIUM}
    for claim in claims:
        assert await scene.settle(claim, Status.FAILED) == frozenset()
    before = await scene.now()
    retried = await scene.store.executions.retry(newer, author=SOMEBODY)
    assert retried.execution.due_by_ts is not None
    assert retried.execution.due_by_ts >= before + MEDIUM_SLA


async def test_queues_count_them_as_medium(scene: Scene) -> None:
    schedule = await scene.add(overlap=ALLOW)
    ids = [await scene.trigger(schedule) for _ in range(3)]
    await make_unknown(scene, ids[:2])
    depth = {Priority.HIGH: 0, Priority.MEDIUM: 3, Priority.LOW: 0}
    assert (await scene.store.queues.get(DEFAULT_HOST_ID, "default")).depth == depth
    assert await Measures(scene.store.database).queue_depths() == {"default": depth}
