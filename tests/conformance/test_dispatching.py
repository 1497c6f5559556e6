"""What a store tells of executions that wait, and how a worker claims exactly those that it was told of."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update
from tests.conformance.suites.scene import LONG, Scene

from foliot.db.tables.executions import execution_t, queue_t
from foliot.model.attempt import Claim
from foliot.model.execution import Status
from foliot.model.ids import new_id
from foliot.model.policy import Priority
from foliot.scheduler.dispatch.dispatching_sql import ClaimableExecution
from foliot.worker.claim_scope import ClaimScope

SECOND = timedelta(seconds=1)
ALLOWED: Any = {"overlap": {"policy": "allow"}}


async def claim_some(scene: Scene, *ids: UUID, worker_id: str = "worker") -> list[Claim]:
    work = scene.store.work
    return await work.claim_some(worker_id, await work.queues(None), ids, lease_s=LONG)


async def waiting(
    scene: Scene,
    *priorities: Priority,
    since: datetime | None = None,
    until: datetime | None = None,
    after: ClaimableExecution | None = None,
    limit: int = 100,
    with_fired: bool = True,
) -> list[ClaimableExecution]:
    now = await scene.now()
    return await scene.store.dispatching.waiting(
        priorities or list(Priority),
        since=since or now - timedelta(hours=1),
        until=until or now + timedelta(hours=1),
        after=after,
        limit=limit,
        with_fired=with_fired,
    )


async def age(scene: Scene, execution_id: UUID, by: timedelta, priority: Priority = Priority.MEDIUM) -> None:
    ready = await scene.now() - by
    await scene.execute(
        update(execution_t)
        .where(execution_t.c.execution_id == execution_id)
        .values(ready_ts=ready, due_by_ts=ready + timedelta(seconds=priority.sla_s))
    )


# --- claiming some --------------------------------------------------------------------------------


async def test_exactly_those_asked_for_are_claimed(scene: Scene) -> None:
    schedule = await scene.add(**ALLOWED)
    one, two, other = [await scene.trigger(schedule) for _ in range(3)]
    claims = await claim_some(scene, one, two)
    assert {each.execution_id for each in claims} == {one, two}
    assert [each.attempt for each in claims] == [1, 1]
    assert (await scene.execution(one)).worker_id == "worker"
    assert (await scene.execution(other)).status is Status.PENDING


async def test_a_claim_of_some_is_like_any_other(scene: Scene) -> None:
    schedule = await scene.add(**ALLOWED)
    some, any_other = await scene.trigger(schedule, args={"a": 1}), await scene.trigger(schedule)
    [claim] = await claim_some(scene, some)
    [other] = await scene.claim()
    assert other.execution_id == any_other
    assert claim.args == {"a": 1}
    kept = claim._replace(execution_id=any_other, args=None, ready_ts=other.ready_ts, fire_ts=other.fire_ts)
    assert kept._replace(started_ts=other.started_ts) == other
    assert await scene.settle(claim, Status.SUCCESS) == frozenset()


async def test_what_is_taken_over_or_gone_is_not_claimed_again(scene: Scene) -> None:
    schedule = await scene.add(**ALLOWED)
    running, ended = [await scene.trigger(schedule) for _ in range(2)]
    claims = {each.execution_id: each for each in await claim_some(scene, running, ended)}
    await scene.settle(claims[ended], Status.SUCCESS)
    assert await claim_some(scene, running, ended, new_id(await scene.now()), worker_id="other") == []
    assert await claim_some(scene) == []
    assert (await scene.execution(running)).worker_id == "worker"


async def test_what_is_not_ready_or_held_is_not_claimed(scene: Scene) -> None:
    schedule = await scene.add("one", overlap={"policy": "queue"})
    first, held = await scene.trigger(schedule), await scene.trigger(schedule)
    later = await scene.trigger(await scene.add("two"))
    await age(scene, later, -timedelta(minutes=5))
    claims = await claim_some(scene, first, held, later)
    assert [each.execution_id for each in claims] == [first]


async def test_a_paused_queue_and_one_of_another_worker_are_left_alone(scene: Scene) -> None:
    paused = await scene.trigger(await scene.add("one", queue="paused"))
    foreign = await scene.trigger(await scene.add("two", queue="foreign"))
    mine = await scene.trigger(await scene.add("three", queue="mine"))
    await scene.execute(update(queue_t).where(queue_t.c.queue == "paused").values(paused=True))
    work = scene.store.work
    queues = await work.queues(["paused", "mine"])
    claims = await work.claim_some("worker", queues, [paused, foreign, mine], lease_s=LONG)
    assert [each.execution_id for each in claims] == [mine]


async def test_of_many_that_claim_the_same_each_goes_to_one(scene: Scene) -> None:
    schedule = await scene.add(**ALLOWED)
    ids = [await scene.trigger(schedule) for _ in range(30)]
    stores = [await scene.open_another() for _ in range(4)]
    queues = await scene.store.work.queues(None)
    found = await asyncio.gather(
        *(
            store.work.claim_some(f"worker-{number}", queues, ids, lease_s=LONG)
            for number, store in enumerate(stores)
        )
    )
    claimed = [each.execution_id for claims in found for each in claims]
    claimed += [each.execution_id for each in await claim_some(scene, *ids)]
    assert sorted(claimed) == sorted(ids)


# --- a scope --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (ClaimScope((Priority.LOW,)), {"low"}),
        (ClaimScope((Priority.LOW, Priority.MEDIUM)), {"low"}),
        (ClaimScope((Priority.LOW,), 10.0), {"low", "old"}),
        (ClaimScope((), 10.0), {"old"}),
        (None, {"low", "high", "old"}),
    ],
)
async def test_a_worker_claims_what_its_scope_says(
    scene: Scene, scope: ClaimScope | None, expected: set[str]
) -> None:
    named = {
        await scene.trigger(await scene.add("low", priority="low")): "low",
        await scene.trigger(await scene.add("high", priority="high")): "high",
    }
    old = await scene.trigger(await scene.add("old", priority="high"))
    named[old] = "old"
    await age(scene, old, 11 * SECOND, Priority.HIGH)
    work = scene.store.work
    claims = await work.claim("worker", await work.queues(None), limit=9, lease_s=LONG, scope=scope)
    assert {named[each.execution_id] for each in claims} == expected


# --- what waits -----------------------------------------------------------------------------------


async def test_what_waits_is_told_in_order_of_its_readiness(scene: Scene) -> None:
    ids = [await scene.trigger(await scene.add(each, priority=each)) for each in Priority]
    for number, (execution_id, priority) in enumerate(zip(ids, Priority, strict=True)):
        await age(scene, execution_id, (10 - number) * SECOND, priority)
    found = await waiting(scene)
    assert [each.execution_id for each in found] == ids
    assert [(each.priority, each.queue, each.attempt) for each in found] == [
        (each, "default", 0) for each in Priority
    ]
    assert [each.execution_id for each in await waiting(scene, Priority.LOW)] == ids[2:]


async def test_a_span_leaves_out_what_became_ready_before_and_after(scene: Scene) -> None:
    schedules = [await scene.add(str(age_s), priority="high") for age_s in (5, 15, 25)]
    ids = [await scene.trigger(each) for each in schedules]
    for execution_id, age_s in zip(ids, (5, 15, 25), strict=True):
        await age(scene, execution_id, age_s * SECOND, Priority.HIGH)
    now = await scene.now()
    found = await waiting(scene, since=now - 20 * SECOND, until=now - 10 * SECOND)
    assert [each.execution_id for each in found] == [ids[1]]


async def test_what_runs_is_held_or_comes_later_does_not_wait(scene: Scene) -> None:
    schedule = await scene.add("one", overlap={"policy": "queue"})
    running = await scene.trigger(schedule)
    await scene.trigger(schedule)
    await claim_some(scene, running)
    later = await scene.trigger(await scene.add("two"))
    await age(scene, later, -timedelta(minutes=5))
    assert await waiting(scene) == []


async def test_pages_leave_nothing_out_and_tell_nothing_twice(scene: Scene) -> None:
    schedule = await scene.add(**ALLOWED)
    ids = [await scene.trigger(schedule) for _ in range(7)]
    ready = await scene.now() - SECOND
    # All at one instant, which is where a page by time alone would stand still.
    await scene.execute(update(execution_t).values(ready_ts=ready, due_by_ts=ready + 5 * SECOND))
    seen: list[UUID] = []
    after: ClaimableExecution | None = None
    while page := await waiting(scene, after=after, limit=2):
        seen += [each.execution_id for each in page]
        after = page[-1]
    assert sorted(seen) == sorted(ids)


async def test_queues_that_are_paused_are_left_out(scene: Scene) -> None:
    await scene.trigger(await scene.add("one", queue="paused"))
    await scene.execute(update(queue_t).where(queue_t.c.queue == "paused").values(paused=True))
    assert await waiting(scene) == []


async def test_what_is_as_it_was_fired_can_be_left_to_whoever_fired_it(scene: Scene) -> None:
    lease = await scene.lead()
    schedule = await scene.add("fired", **ALLOWED)
    fired = await scene.fire(lease, schedule)
    [fresh] = [each.execution_id for each in fired.fired]
    by_hand = await scene.trigger(schedule)
    assert {each.execution_id for each in await waiting(scene)} == {fresh, by_hand}
    assert {each.execution_id for each in await waiting(scene, with_fired=False)} == {by_hand}
    # Handed back by a worker, it is as good as new.
    claims = {each.execution_id: each for each in await claim_some(scene, fresh, by_hand)}
    await scene.settle(claims[fresh], Status.PENDING)
    [again] = await waiting(scene, with_fired=False)
    assert (again.execution_id, again.attempt) == (fresh, 1)


async def test_of_what_was_fired_the_held_are_told_apart(scene: Scene) -> None:
    lease = await scene.lead()
    schedule = await scene.add("queued", overlap={"policy": "queue"})
    await scene.trigger(schedule)
    fired = await scene.fire(lease, schedule)
    assert fired.held == {each.execution_id for each in fired.fired}
    free = await scene.fire(lease, await scene.add("free", **ALLOWED))
    assert free.held == frozenset()
    assert len(free.fired) == 1
