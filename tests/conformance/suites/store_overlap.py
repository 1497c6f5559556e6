"""Conformance suite for overlap.

Limits are exact, because every insert of an execution counts the open ones under the schedule's lock.
"""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select
from tests.conformance.suites.scene import Scene

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.errors import QueueFullError
from foliot.model.execution import Status
from foliot.model.schedule import ScheduleState
from foliot.planning.change import Author


class OverlapConformance:
    """Tests for overlap policies. Fixture: `scene`."""

    async def test_skip_decides_the_time_with_a_row_that_does_not_count_as_a_run(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.trigger(schedule)
        [firing] = await scene.plan(schedule)
        fired = await scene.commit(await scene.lead(), [firing])
        assert [each.reason for each in fired.skipped] == ["overlap"]
        row = (await scene.executions(schedule))[0]
        assert (row.status, row.reason, row.fire_ts) == (Status.SKIPPED, "overlap", schedule.next_fire_ts)
        assert row.ended_ts is not None
        moved = await scene.get(schedule)
        assert firing.next is not None
        assert (moved.run_count, moved.next_fire_ts) == (0, firing.next.fire_ts)

    async def test_a_last_run_that_overlap_skips_is_still_to_come(self, scene: Scene) -> None:
        schedule = await scene.add(max_runs=1)
        await scene.trigger(schedule)
        await scene.fire(await scene.lead(), schedule)
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count) == (ScheduleState.ACTIVE, 0)
        assert moved.next_fire_ts is not None
        assert schedule.next_fire_ts is not None
        assert moved.next_fire_ts > schedule.next_fire_ts

    async def test_a_last_time_that_overlap_skips_completes_the_schedule(self, scene: Scene) -> None:
        schedule = await scene.add(trigger={"kind": "once", "at": (await scene.now()).isoformat()})
        await scene.trigger(schedule)
        await scene.fire(await scene.lead(), schedule)
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count, moved.next_run_ts) == (ScheduleState.COMPLETED, 0, None)

    async def test_every_run_that_overlap_skips_in_one_step_is_not_counted(self, scene: Scene) -> None:
        schedule = await scene.add(
            trigger={"kind": "interval", "seconds": 1}, misfire={"policy": "skip"}, max_runs=50, age_s=4.5
        )
        fired = await scene.fire(await scene.lead(), schedule)
        assert len(fired.fired) == 1
        assert len(fired.skipped) >= 3
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count) == (ScheduleState.ACTIVE, 1)
        assert moved.next_fire_ts == fired.skipped[-1].fire_ts + timedelta(seconds=1)

    async def test_a_step_that_plans_the_last_runs_goes_on_when_overlap_skips_some(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add(
            trigger={"kind": "interval", "seconds": 1}, misfire={"policy": "skip"}, max_runs=3, age_s=8.5
        )
        fired = await scene.fire(await scene.lead(), schedule)
        assert (len(fired.fired), len(fired.skipped)) == (1, 2)
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count) == (ScheduleState.ACTIVE, 1)
        assert moved.next_fire_ts == fired.skipped[-1].fire_ts + timedelta(seconds=1), "none is left out"

    async def test_queue_holds_the_run_until_it_is_released(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue"})
        manual = await scene.trigger(schedule)
        fired = await scene.fire(await scene.lead(), schedule)
        [told] = fired.fired
        held = await scene.execution(told.execution_id)
        assert (held.status, held.ready_ts, held.due_by_ts) == (Status.PENDING, None, None)
        assert [claim.execution_id for claim in await scene.claim()] == [manual]
        assert (await scene.get(schedule)).run_count == 1

    async def test_cancel_running_stops_the_old_one_and_holds_the_new_one(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "cancel_running"})
        await scene.trigger(schedule)
        running = await scene.claim_one()
        fired = await scene.fire(await scene.lead(), schedule)
        [told] = fired.fired
        assert (await scene.execution(told.execution_id)).ready_ts is None
        assert (await scene.execution(running.execution_id)).status is Status.RUNNING
        renewal = await scene.store.work.renew("worker", [running], 60)
        assert renewal.cancelled == {running.execution_id}
        assert renewal.lost == frozenset()

    async def test_cancel_running_ends_a_pending_one_at_once(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "cancel_running"})
        waiting = await scene.trigger(schedule)
        await scene.fire(await scene.lead(), schedule)
        old = await scene.execution(waiting)
        assert (old.status, old.reason) == (Status.CANCELLED, "replaced")
        assert old.ended_ts is not None
        assert await scene.claim() == []

    async def test_allow_ignores_the_limit(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "allow"})
        for _ in range(3):
            await scene.trigger(schedule)
        await scene.fire(await scene.lead(), schedule)
        assert len(await scene.claim()) == 4

    async def test_a_limit_above_one_lets_so_many_run(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "skip", "max_instances": 2})
        await scene.trigger(schedule)
        fired = await scene.fire(await scene.lead(), schedule)
        assert len(fired.fired) == 1
        assert len(await scene.claim()) == 2

    async def test_retrying_and_running_ones_are_open_and_ended_ones_are_not(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue", "max_instances": 2})
        for _ in range(3):
            await scene.trigger(schedule)
        running, retried = await scene.claim()
        await scene.settle(retried, Status.RETRYING, attempt_status=Status.FAILED, retry_in_s=3600)
        fired = await scene.fire(await scene.lead(), schedule)
        assert (await scene.execution(fired.fired[0].execution_id)).ready_ts is None
        for claim in (running,):
            await scene.settle(claim, Status.SUCCESS)
        assert await scene.release(await scene.lead()) == 1

    async def test_a_manual_run_is_held_never_skipped(self, scene: Scene) -> None:
        schedule = await scene.add()
        first = await scene.trigger(schedule)
        second = await scene.trigger(schedule)
        held = await scene.execution(second)
        assert (held.status, held.ready_ts) == (Status.PENDING, None)
        assert [claim.execution_id for claim in await scene.claim()] == [first]

    async def test_runs_that_catch_up_are_held_never_skipped(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=4 * 60 + 30, misfire={"policy": "fire_all"})
        fired = await scene.fire(await scene.lead(), schedule)
        assert len(fired.fired) == 4
        [claim] = await scene.claim()
        assert claim.fire_ts == schedule.next_fire_ts, "the oldest runs first"

    async def test_however_many_insert_at_once_no_more_than_the_limit_are_ready(self, scene: Scene) -> None:
        limit = 2
        schedule = await scene.add(overlap={"policy": "queue", "max_instances": limit})
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        now = await scene.now()
        first, *rest = await scene.stores(7)
        await asyncio.gather(
            *(scene.trigger(schedule, store) for store in rest[:3]),
            first.firing.fire(lease, firings, now=now),
            *(scene.trigger(schedule, store) for store in rest[3:]),
        )
        rows = await scene.rows(select(execution_t.c.ready_ts))
        assert len(rows) == 7
        assert sum(1 for row in rows if row.ready_ts is not None) == limit
        assert len(await scene.claim()) == limit

    # --- max_queued -------------------------------------------------------------------------------

    async def test_beyond_max_queued_a_manual_run_is_refused_and_nothing_is_written(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add(overlap={"policy": "queue", "max_queued": 2})
        for _ in range(3):
            await scene.trigger(schedule)
        before = await scene.everything()
        with pytest.raises(QueueFullError, match="max_queued"):
            await scene.trigger(schedule)
        assert await scene.everything() == before
        [claim] = await scene.claim()
        await scene.settle(claim, Status.FAILED)
        with pytest.raises(QueueFullError):
            await scene.store.executions.retry(claim.execution_id, Author("somebody"))
        assert await scene.release(await scene.lead()) == 1
        await scene.trigger(schedule)

    async def test_beyond_max_queued_an_ordinary_time_is_skipped(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue", "max_queued": 1})
        await scene.trigger(schedule)
        await scene.trigger(schedule)
        fired = await scene.fire(await scene.lead(), schedule)
        assert [each.reason for each in fired.skipped] == ["overlap"]
        moved = await scene.get(schedule)
        assert (moved.run_count, moved.state) == (0, ScheduleState.ACTIVE)

    async def test_times_that_fire_all_makes_good_wait_for_room_and_none_is_lost(self, scene: Scene) -> None:
        schedule = await scene.add(
            age_s=7 * 60 + 30, misfire={"policy": "fire_all"}, overlap={"policy": "skip", "max_queued": 2}
        )
        lease = await scene.lead()
        fired = await scene.fire(lease, schedule)
        assert len(fired.fired) == 3
        assert [due.schedule_id for due in fired.waiting] == [schedule.schedule_id]
        waiting = await scene.get(schedule)
        assert schedule.next_fire_ts is not None
        assert (waiting.run_count, waiting.state) == (3, ScheduleState.ACTIVE)
        assert waiting.next_fire_ts == schedule.next_fire_ts + timedelta(minutes=3)
        assert waiting.next_run_ts is not None
        assert waiting.next_run_ts > await scene.now() - timedelta(seconds=1)
        for _ in range(20):
            for claim in await scene.claim():
                await scene.settle(claim, Status.SUCCESS)
            await scene.release(lease)
            upcoming = (await scene.get(schedule)).next_fire_ts
            if upcoming is not None and upcoming <= schedule.next_fire_ts + timedelta(minutes=6):
                await scene.make_due(schedule)
                await scene.fire(lease, schedule)
        rows = await scene.executions(schedule)
        assert {row.status for row in rows} == {Status.SUCCESS}
        times = [row.fire_ts for row in rows]
        assert times == [schedule.next_fire_ts + timedelta(minutes=n) for n in range(7)]

    async def test_a_delay_waits_for_room(self, scene: Scene) -> None:
        schedule = await scene.add(
            trigger={"kind": "delay", "seconds": 30}, age_s=40, overlap={"policy": "queue", "max_queued": 1}
        )
        await scene.trigger(schedule)
        await scene.trigger(schedule)
        lease = await scene.lead()
        fired = await scene.fire(lease, schedule)
        assert (len(fired.fired), len(fired.skipped), len(fired.waiting)) == (0, 0, 1)
        for claim in await scene.claim():
            await scene.settle(claim, Status.SUCCESS)
        await scene.release(lease)
        await scene.make_due(schedule)
        assert len((await scene.fire(lease, schedule)).fired) == 1

    async def test_however_many_trigger_at_once_no_more_than_max_queued_are_held(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue", "max_queued": 2})
        stores = await scene.stores(6)
        results = await asyncio.gather(
            *(scene.trigger(schedule, store) for store in stores), return_exceptions=True
        )
        assert sum(isinstance(each, QueueFullError) for each in results) == 3
        assert len(await scene.executions(schedule)) == 3

    async def test_max_queued_is_stored_only_where_it_is_not_the_default(self, scene: Scene) -> None:
        """The previous release can't read `max_queued`."""
        plain = await scene.add("plain", overlap={"policy": "queue", "max_queued": 1000})
        own = await scene.add("own", overlap={"policy": "queue", "max_queued": 7})
        assert (await scene.get(plain)).spec.overlap.max_queued == 1000
        assert (await scene.get(own)).spec.overlap.max_queued == 7
        rows = await scene.rows(select(schedule_t.c.schedule_id, schedule_t.c.policies))
        stored = {row.schedule_id: row.policies["overlap"] for row in rows}
        assert stored[plain.schedule_id] == {"policy": "queue", "max_instances": 1}
        assert stored[own.schedule_id] == {"policy": "queue", "max_instances": 1, "max_queued": 7}
        versions = await scene.rows(select(schedule_version_t.c.document))
        assert sorted("max_queued" in row.document["overlap"] for row in versions) == [False, True]
