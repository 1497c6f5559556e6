"""Conformance suite for backfills: a past range is fired in small steps, each fire time once."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import select
from tests.conformance.suites.scene import LONG, WHOLE, Scene

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import backfill_t
from foliot.instance.store import SqlStore
from foliot.model.backfill import Backfill, BackfillState
from foliot.model.errors import FencedError, InvalidError, NotFoundError
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule
from foliot.planning.backfill import BackfillStep, plan_backfill
from foliot.planning.change import Author
from foliot.planning.definition import compile_spec
from foliot.scheduler.backfills_sql import BackfillAdvance

HOURLY = {"kind": "cron", "expression": "0 * * * *"}
FREELY = {"policy": "allow"}
ONE_AT_A_TIME = {"policy": "queue", "max_instances": 1}
MAX_OPEN = 200


def plan(schedule: Schedule, position_ts: datetime, to_ts: datetime, limit: int) -> BackfillStep:
    cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
    return plan_backfill(schedule, cadence, position_ts, to_ts, limit=limit)


async def request(scene: Scene, schedule: Schedule, hours: int) -> Backfill:
    """Request a backfill of the last full hours."""
    to_ts = (await scene.now()).replace(minute=0, second=0, microsecond=0)
    from_ts = to_ts - timedelta(hours=hours)
    return await scene.store.backfills.create(schedule.schedule_id, from_ts, to_ts, author=Author("ann"))


async def step(
    scene: Scene,
    lease: Lease,
    backfill: Backfill,
    *,
    limit: int = 100,
    max_open: int = MAX_OPEN,
    store: SqlStore | None = None,
) -> BackfillAdvance:
    backfills = (store or scene.store).backfills
    return await backfills.step(lease, backfill.backfill_id, plan, limit=limit, max_open=max_open)


async def made(scene: Scene, schedule: Schedule) -> list[Execution]:
    """Return the executions that backfills created for the schedule, oldest fire time first."""
    rows = await scene.executions(schedule)
    return [row for row in rows if row.triggered_by is TriggeredBy.BACKFILL]


async def work_off(scene: Scene) -> list[UUID]:
    """Claim all ready executions and settle them as successful."""
    claims = await scene.claim()
    for claim in claims:
        await scene.settle(claim, Status.SUCCESS)
    return [claim.execution_id for claim in claims]


def times(rows: Sequence[Execution]) -> list[datetime]:
    return [row.fire_ts for row in rows]


def hours_of(backfill: Backfill) -> list[datetime]:
    count = int((backfill.to_ts - backfill.from_ts).total_seconds() // 3600)
    return [backfill.from_ts + timedelta(hours=number) for number in range(count)]


class BackfillConformance:
    """Tests for backfills. Fixture: `scene`."""

    # --- asking -----------------------------------------------------------------------------------

    async def test_a_request_is_counted_and_kept_with_who_asked(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 5)
        assert (backfill.state, backfill.total_count, backfill.requested_by) == (
            BackfillState.RUNNING,
            5,
            "ann",
        )
        assert (backfill.created_count, backfill.ended_count, backfill.progress) == (0, 0, 0.0)
        assert await scene.store.backfills.get(backfill.backfill_id) == backfill
        later = await request(scene, schedule, 2)
        found = await scene.store.backfills.for_schedule(schedule.schedule_id)
        assert {each.backfill_id for each in found} == {backfill.backfill_id, later.backfill_id}
        assert await made(scene, schedule) == []

    async def test_a_request_that_makes_no_sense_stores_nothing(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        now = await scene.now()
        backfills = scene.store.backfills
        with pytest.raises(InvalidError):
            await backfills.create(schedule.schedule_id, now, now + timedelta(hours=9), author=Author())
        deleted = await scene.delete(schedule)
        for schedule_id in (deleted.schedule_id, new_id()):
            with pytest.raises(NotFoundError):
                await backfills.create(schedule_id, now - timedelta(days=1), now, author=Author())
        assert await scene.rows(select(backfill_t)) == []

    async def test_another_hosts_backfills_are_not_found(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 2)
        other = await scene.add_host("other")
        backfills = scene.store.backfills
        for act in (
            backfills.get(backfill.backfill_id, host_id=other),
            backfills.cancel(backfill.backfill_id, Author(), host_id=other),
            backfills.create(
                schedule.schedule_id, backfill.from_ts, backfill.to_ts, author=Author(), host_id=other
            ),
        ):
            with pytest.raises(NotFoundError):
                await act
        assert await backfills.for_schedule(schedule.schedule_id, host_id=other) == []
        assert await backfills.get(backfill.backfill_id, host_id=schedule.host_id) == backfill

    # --- carrying out -----------------------------------------------------------------------------

    async def test_every_time_of_the_range_gets_an_execution_of_its_own(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY, queue="past", priority="high")
        backfill = await request(scene, schedule, 5)
        lease = await scene.lead()
        advances = [await step(scene, lease, backfill, limit=2) for _ in range(4)]
        assert [(each.created, each.ready, each.is_over) for each in advances] == [
            (2, 2, False),
            (2, 2, False),
            (1, 1, True),
            (0, 0, True),
        ]
        rows = await made(scene, schedule)
        assert times(rows) == hours_of(backfill)
        assert {(row.triggered_by_user, row.queue, row.priority, row.status) for row in rows} == {
            ("ann", "past", "high", Status.PENDING)
        }
        done = await scene.store.backfills.get(backfill.backfill_id)
        assert (done.state, done.created_count, done.ended_count) == (BackfillState.DONE, 5, 0)
        assert len(await work_off(scene)) == 5
        assert (await scene.store.backfills.get(backfill.backfill_id)).ended_count == 5

    async def test_a_time_that_was_scheduled_fires_again(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=90, overlap=FREELY)
        lease = await scene.lead()
        await scene.fire(lease, schedule)
        assert schedule.next_fire_ts is not None
        backfill = await scene.store.backfills.create(
            schedule.schedule_id, schedule.created_ts, await scene.now(), author=Author("ann")
        )
        await step(scene, lease, backfill)
        rows = await scene.executions(schedule)
        assert times(rows) == [schedule.next_fire_ts] * 2
        assert {row.triggered_by for row in rows} == {TriggeredBy.SCHEDULER, TriggeredBy.BACKFILL}

    async def test_a_time_that_a_backfill_has_fired_does_not_fire_again(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        lease = await scene.lead()
        await step(scene, lease, await request(scene, schedule, 3))
        before = await made(scene, schedule)
        second = await request(scene, schedule, 5)
        assert (await step(scene, lease, second)).created == 2
        told = await scene.store.backfills.get(second.backfill_id)
        assert (told.created_count, told.existing_count, told.progress) == (2, 3, 1.0)
        rows = await made(scene, schedule)
        assert times(rows) == hours_of(second)
        assert rows[2:] == before

    async def test_times_outside_the_window_are_passed_over(self, scene: Scene) -> None:
        window = {"hours_of_day": [1, 2], "timezone": "UTC"}
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY, window=window)
        backfill = await request(scene, schedule, 48)
        assert backfill.total_count == 48
        await step(scene, await scene.lead(), backfill)
        assert {row.fire_ts.hour for row in await made(scene, schedule)} == {1, 2}
        told = await scene.store.backfills.get(backfill.backfill_id)
        assert (told.total_count, told.created_count, told.progress) == (4, 4, 1.0)

    async def test_what_overlap_forbids_is_held_and_released_oldest_first(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 3)
        lease = await scene.lead()
        advance = await step(scene, lease, backfill)
        assert (advance.created, advance.ready) == (3, 1)
        order = await work_off(scene)
        while await scene.release(lease):
            order += await work_off(scene)
        assert order == [row.execution_id for row in await made(scene, schedule)]

    async def test_a_backfill_waits_for_room_among_held_executions(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap={"policy": "queue", "max_queued": 2})
        backfill = await request(scene, schedule, 5)
        lease = await scene.lead()
        advance = await step(scene, lease, backfill)
        assert (advance.created, advance.ready, advance.is_over) == (3, 1, False)
        assert await step(scene, lease, backfill) == BackfillAdvance()
        order: list[UUID] = []
        for _ in range(6):
            order += await work_off(scene)
            await scene.release(lease)
            await step(scene, lease, backfill)
        assert order == [row.execution_id for row in await made(scene, schedule)]
        assert len(order) == 5
        assert (await scene.store.backfills.get(backfill.backfill_id)).state is BackfillState.DONE

    async def test_a_backfill_does_not_hold_up_the_schedules_own_runs(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=ONE_AT_A_TIME)
        lease = await scene.lead()
        await step(scene, lease, await request(scene, schedule, 5))
        mine = await scene.trigger(schedule)
        await work_off(scene)
        await scene.release(lease)
        assert await work_off(scene) == [mine]

    async def test_a_run_that_replaces_another_leaves_the_held_past_alone(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap={"policy": "cancel_running"})
        lease = await scene.lead()
        await step(scene, lease, await request(scene, schedule, 3))
        first = await scene.claim_one()
        await scene.trigger(schedule)
        assert (await scene.store.work.renew("worker", [first], LONG)).cancelled == {first.execution_id}
        assert [row.status for row in await made(scene, schedule)][1:] == [Status.PENDING] * 2

    async def test_no_more_are_open_than_its_pace_allows(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        backfill = await request(scene, schedule, 10)
        lease = await scene.lead()
        assert (await step(scene, lease, backfill, max_open=4)).created == 4
        assert await step(scene, lease, backfill, max_open=4) == BackfillAdvance()
        claim = await scene.claim_one()
        assert await step(scene, lease, backfill, max_open=4) == BackfillAdvance(), "it still runs"
        await scene.settle(claim, Status.SUCCESS)
        assert (await step(scene, lease, backfill, max_open=4)).created == 1

    async def test_a_step_that_is_not_committed_leaves_nothing_behind(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 5)
        lease = await scene.lead()
        await step(scene, lease, backfill, limit=2)
        before = await scene.store.backfills.get(backfill.backfill_id)

        def failing(_schedule: Schedule, _position: datetime, _to: datetime, _limit: int) -> BackfillStep:
            raise KeyError("mine")

        with pytest.raises(KeyError):
            await scene.store.backfills.step(lease, backfill.backfill_id, failing, limit=9, max_open=9)
        assert await scene.store.backfills.get(backfill.backfill_id) == before
        await step(scene, lease, backfill)
        assert times(await made(scene, schedule)) == hours_of(backfill)

    async def test_a_deposed_leader_can_not_go_on_with_it(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        backfill = await request(scene, schedule, 5)
        old = await scene.lead(instance_id="one")
        await step(scene, old, backfill, limit=2)
        new = await scene.lead(instance_id="two")
        with pytest.raises(FencedError):
            await step(scene, old, backfill)
        assert len(await made(scene, schedule)) == 2
        await step(scene, new, backfill)
        assert times(await made(scene, schedule)) == hours_of(backfill)

    async def test_steps_at_once_make_every_time_once(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        backfill = await request(scene, schedule, 40)
        lease = await scene.lead()
        stores = await scene.stores(4)
        while (await scene.store.backfills.get(backfill.backfill_id)).state is not BackfillState.DONE:
            await asyncio.gather(*(step(scene, lease, backfill, limit=3, store=each) for each in stores))
        assert times(await made(scene, schedule)) == hours_of(backfill)

    async def test_each_shard_sees_to_the_backfills_of_its_schedules(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 2)
        await scene.store.leases.reshard(2)
        mine, other = Shard(schedule.slot % 2, 2), Shard(1 - schedule.slot % 2, 2)
        backfills = scene.store.backfills
        assert await backfills.running(mine, after=None, limit=9) == [backfill.backfill_id]
        assert await backfills.running(other, after=None, limit=9) == []
        assert await step(scene, await scene.lead(other), backfill) == BackfillAdvance()
        assert (await step(scene, await scene.lead(mine), backfill)).created == 2

    async def test_those_not_over_are_listed_in_turn(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        ids = sorted([(await request(scene, schedule, 2)).backfill_id for _ in range(4)])
        running = scene.store.backfills.running
        assert await running(WHOLE, after=None, limit=2) == ids[:2]
        assert await running(WHOLE, after=ids[1], limit=9) == ids[2:]
        await scene.store.backfills.cancel(ids[0], Author())
        assert await running(WHOLE, after=None, limit=2) == ids[1:3]

    # --- stopping ---------------------------------------------------------------------------------

    async def test_cancelling_makes_no_more_and_cancels_what_waits(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 6)
        lease = await scene.lead()
        await step(scene, lease, backfill, limit=4)
        running = await scene.claim_one()
        manual = await scene.trigger(schedule)
        told, ended = await scene.store.backfills.cancel(backfill.backfill_id, author=Author("bob"))
        assert (told.state, told.created_count, told.ended_count) == (BackfillState.CANCELLED, 4, 3)
        assert (await step(scene, lease, backfill)).is_over
        rows = await made(scene, schedule)
        assert [row.status for row in rows] == [Status.RUNNING, *[Status.CANCELLED] * 3]
        assert {row.error for row in rows[1:]} == {"its backfill was cancelled by bob"}
        assert {each.execution_id for each in ended} == {row.execution_id for row in rows[1:]}
        assert (await scene.execution(manual)).status is Status.PENDING
        assert await scene.settle(running, Status.SUCCESS) == frozenset()
        again, ended = await scene.store.backfills.cancel(backfill.backfill_id, Author())
        assert (again.state, again.ended_count, ended) == (BackfillState.CANCELLED, 4, [])

    async def test_what_was_cancelled_before_it_started_runs_when_asked_for_again(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        lease = await scene.lead()
        first = await request(scene, schedule, 3)
        await step(scene, lease, first)
        await work_off(scene)
        await scene.store.backfills.cancel(first.backfill_id, Author())
        second = await request(scene, schedule, 3)
        await step(scene, lease, second)
        told = await scene.store.backfills.get(second.backfill_id)
        assert (told.created_count, told.existing_count) == (2, 1)
        assert [row.status for row in await made(scene, schedule)] == [
            Status.SUCCESS,
            Status.PENDING,
            Status.PENDING,
        ]

    async def test_a_deleted_schedule_ends_its_backfills(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY)
        backfill = await request(scene, schedule, 4)
        lease = await scene.lead()
        await step(scene, lease, backfill, limit=2)
        await scene.delete(schedule)
        assert [row.status for row in await made(scene, schedule)] == [Status.CANCELLED] * 2
        assert (await step(scene, lease, backfill)).is_over
        told = await scene.store.backfills.get(backfill.backfill_id)
        assert told.state is BackfillState.CANCELLED

    async def test_a_paused_schedule_can_be_filled_in(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY)
        await scene.pause(schedule)
        backfill = await request(scene, schedule, 3)
        await step(scene, await scene.lead(), backfill)
        assert len(await work_off(scene)) == 3

    async def test_a_backfill_does_not_count_as_runs_of_the_schedule(self, scene: Scene) -> None:
        schedule = await scene.add(trigger=HOURLY, overlap=FREELY, max_runs=2)
        await step(scene, await scene.lead(), await request(scene, schedule, 5))
        known = await scene.get(schedule)
        assert (known.run_count, known.next_fire_ts) == (0, schedule.next_fire_ts)
        [[count]] = await scene.rows(select(execution_t.c.triggered_by).distinct())
        assert count == "backfill"
