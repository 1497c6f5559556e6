"""Conformance suite for firing: one fenced transaction decides each due time exactly once."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, select, update
from tests.conformance.suites.scene import WHOLE, Scene

from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import FencedError, InvalidError
from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.lease import Shard
from foliot.model.policy import Priority
from foliot.model.schedule import ScheduleState
from foliot.planning.fire import PLAN_HOLDS, UnplannedSchedule
from foliot.planning.next import Next
from foliot.scheduler.firing_sql import NAMED

GUARDS: Mapping[str, Mapping[str, Any]] = {
    "another version": {"aggregate_version": schedule_t.c.aggregate_version + 1},
    "an earlier version": {"aggregate_version": schedule_t.c.aggregate_version - 1},
    "a pause": {"paused": True},
    "an inactive definition": {"active": False},
    "no next time": {"next_fire_ts": None},
}


class FiringConformance:
    """Tests for firing. Fixture: `scene`."""

    async def test_firing_writes_a_pending_row_and_moves_the_schedule_on(self, scene: Scene) -> None:
        schedule = await scene.add(priority="high", queue="reports")
        lease = await scene.lead(instance_id="one")
        before = await scene.now()
        [firing] = await scene.plan(schedule)
        fired = await scene.commit(lease, [firing])
        after = await scene.now()

        [row] = await scene.executions(schedule)
        assert schedule.next_fire_ts is not None
        assert (row.status, row.reason, row.triggered_by) == (Status.PENDING, None, TriggeredBy.SCHEDULER)
        assert (row.fire_ts, row.aggregate_version) == (schedule.next_fire_ts, 1)
        assert (row.missed_count, row.missed_from_ts, row.attempt) == (0, None, 0)
        assert (row.host_id, row.queue, row.priority) == (DEFAULT_HOST_ID, "reports", Priority.HIGH)
        assert row.scheduler_instance_id == "one"
        assert row.ready_ts is not None
        assert row.due_by_ts is not None
        assert before <= row.ready_ts <= after
        assert before + timedelta(seconds=1) <= row.due_by_ts <= after + timedelta(seconds=1)

        moved = await scene.get(schedule)
        assert firing.next is not None
        assert (moved.next_fire_ts, moved.next_run_ts) == firing.next
        assert (moved.run_count, moved.aggregate_version, moved.state) == (1, 1, ScheduleState.ACTIVE)

        [told] = fired.fired
        assert (told.execution_id, told.schedule_id, told.fire_ts) == (
            row.execution_id,
            schedule.schedule_id,
            row.fire_ts,
        )
        assert 29.9 < told.lateness_s < 90
        assert (list(fired.skipped), list(fired.refused)) == ([], [])

    async def test_a_row_that_decides_many_times_says_how_many_and_from_when(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=10 * 60 + 30)
        await scene.fire(await scene.lead(), schedule)
        [row] = await scene.executions(schedule)
        assert (row.missed_count, row.missed_from_ts) == (9, schedule.next_fire_ts)
        assert schedule.next_fire_ts is not None
        assert row.fire_ts == schedule.next_fire_ts + timedelta(minutes=9)

    async def test_a_skipped_time_leaves_a_row_that_says_why_and_never_runs(self, scene: Scene) -> None:
        schedule = await scene.add(misfire={"policy": "skip"})
        fired = await scene.fire(await scene.lead(), schedule)
        [row] = await scene.executions(schedule)
        assert (row.status, row.reason) == (Status.SKIPPED, "misfire")
        assert row.ended_ts is not None
        assert (row.ready_ts, row.due_by_ts) == (None, None)
        assert [each.reason for each in fired.skipped] == [SkipReason.MISFIRE]
        assert await scene.claim() == []
        assert (await scene.get(schedule)).run_count == 0

    async def test_a_schedule_without_a_further_time_is_completed(self, scene: Scene) -> None:
        at = await scene.now() - timedelta(seconds=5)
        schedule = await scene.add(trigger={"kind": "once", "at": at.isoformat()})
        await scene.fire(await scene.lead(), schedule)
        moved = await scene.get(schedule)
        assert (moved.state, moved.next_fire_ts, moved.next_run_ts) == (ScheduleState.COMPLETED, None, None)

    @pytest.mark.parametrize("change", GUARDS)
    async def test_a_schedule_that_changed_since_it_was_planned_is_refused(
        self, scene: Scene, change: str
    ) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        await scene.execute(update(schedule_t).values(GUARDS[change]))
        before = await scene.everything()
        fired = await scene.commit(lease, firings)
        assert list(fired.refused) == [firing.due for firing in firings]
        assert (list(fired.fired), list(fired.skipped)) == ([], [])
        assert await scene.everything() == before

    @pytest.mark.parametrize("count", [3, NAMED + 1])
    async def test_of_a_batch_only_what_has_changed_is_refused(self, scene: Scene, count: int) -> None:
        changed, *others = [await scene.add(f"number {number}") for number in range(count)]
        lease = await scene.lead()
        firings = await scene.plan(changed, *others)
        await scene.edit(changed, description="another")
        fired = await scene.commit(lease, firings)
        assert [due.schedule_id for due in fired.refused] == [changed.schedule_id]
        assert {each.schedule_id for each in fired.fired} == {each.schedule_id for each in others}
        assert await scene.executions(changed) == []
        assert [len(await scene.executions(each)) for each in others] == [1] * len(others)

    @pytest.mark.parametrize("kind", ["function", "event"])
    async def test_schedules_are_named_in_what_is_told_of_a_small_batch_and_of_any_if_asked_for(
        self, scene: Scene, kind: str
    ) -> None:
        event = {"kind": "event", "event_topic": "t", "event_type": "T", "event_data": {}}
        fields: dict[str, Any] = {"target": event} if kind == "event" else {}
        schedules = [await scene.add(f"number {number}", **fields) for number in range(NAMED + 1)]
        names = {each.schedule_id: each.spec.name for each in schedules}
        lease = await scene.lead()
        few = await scene.fire(lease, *schedules[:3])
        assert [each.schedule_name for each in few.fired] == [names[each.schedule_id] for each in few.fired]
        assert {(each.queue, each.aggregate_version) for each in few.fired} == {("default", 1)}
        for asks in (False, True):
            await scene.execute(delete(execution_t))
            await scene.execute(
                update(schedule_t).values(
                    next_fire_ts=schedules[0].next_fire_ts, next_run_ts=schedules[0].next_run_ts
                )
            )
            scene.store.firing.names_all = asks
            many = await scene.fire(lease, *schedules)
            told = {each.schedule_id: each.schedule_name for each in many.fired}
            told |= {each.schedule_id: each.schedule_name for each in many.skipped}
            is_named = asks or kind == "event"  # for events, names are always read
            assert told == (names if is_named else dict.fromkeys(names))

    async def test_a_time_that_has_moved_is_refused(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        assert schedule.next_fire_ts is not None
        await scene.execute(
            update(schedule_t).values(next_fire_ts=schedule.next_fire_ts - timedelta(seconds=1))
        )
        before = await scene.everything()
        assert len((await scene.commit(lease, firings)).refused) == 1
        assert await scene.everything() == before

    @pytest.mark.parametrize("kind", ["function", "event"])
    async def test_a_plan_that_has_grown_old_is_refused(self, scene: Scene, kind: str) -> None:
        targets: dict[str, dict[str, Any]] = {
            "function": {},
            "event": {"target": {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue"}},
        }
        schedule = await scene.add(**targets[kind])
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        before = await scene.everything()
        firing = scene.store.firing
        fire = firing.fire_events if kind == "event" else firing.fire
        fired = await fire(lease, firings, now=await scene.now() - 2 * PLAN_HOLDS)
        assert list(fired.refused) == [each.due for each in firings]
        assert (list(fired.fired), list(fired.skipped)) == ([], [])
        assert await scene.everything() == before

    async def test_nothing_fires_before_its_time_by_the_clock_of_the_store(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        await scene.execute(update(schedule_t).values(next_run_ts=await scene.now() + timedelta(hours=1)))
        before = await scene.everything()
        assert len((await scene.commit(lease, firings)).refused) == 1
        assert await scene.everything() == before

    async def test_a_leader_fires_only_what_is_of_its_shard(self, scene: Scene) -> None:
        schedule = await scene.add()
        firings = await scene.plan(schedule)
        await scene.store.leases.reshard(2)
        mine = schedule.slot % 2
        before = await scene.everything()
        stranger = await scene.lead(Shard(1 - mine, 2))
        assert len((await scene.commit(stranger, firings)).refused) == 1
        assert await scene.everything() == before
        leader = await scene.lead(Shard(mine, 2))
        assert len((await scene.commit(leader, firings)).fired) == 1

    async def test_a_deleted_schedule_is_refused(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        await scene.delete(schedule)
        before = await scene.everything()
        assert len((await scene.commit(lease, firings)).refused) == 1
        assert await scene.everything() == before

    async def test_a_changed_schedule_does_not_hold_up_the_others_of_its_batch(self, scene: Scene) -> None:
        schedules = [await scene.add(f"number-{n}") for n in range(5)]
        lease = await scene.lead()
        firings = await scene.plan(*schedules)
        await scene.edit(schedules[2], description="another")
        fired = await scene.commit(lease, firings)
        assert {due.schedule_id for due in fired.refused} == {schedules[2].schedule_id}
        assert {each.schedule_id for each in fired.fired} == {
            each.schedule_id for each in schedules if each is not schedules[2]
        }

    async def test_a_deposed_leader_can_not_fire(self, scene: Scene) -> None:
        schedule = await scene.add()
        old = await scene.lead(instance_id="one")
        firings = await scene.plan(schedule)
        new = await scene.lead(instance_id="two")
        before = await scene.everything()
        with pytest.raises(FencedError):
            await scene.commit(old, firings)
        assert await scene.everything() == before
        assert len((await scene.commit(new, firings)).fired) == 1

    async def test_a_time_fired_twice_is_refused_the_second_time(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        await scene.commit(lease, firings)
        before = await scene.everything()
        assert len((await scene.commit(lease, firings)).refused) == 1
        assert await scene.everything() == before

    async def test_two_that_fire_the_same_time_at_once_leave_one_row(self, scene: Scene) -> None:
        schedules = [await scene.add(f"number-{n}") for n in range(20)]
        lease = await scene.lead()
        firings = await scene.plan(*schedules)
        now = await scene.now()
        stores = await scene.stores(3)
        batches = [firings, firings[::-1], firings]
        results = await asyncio.gather(
            *(store.firing.fire(lease, batch, now=now) for store, batch in zip(stores, batches, strict=True))
        )
        assert sum(len(result.fired) for result in results) == 20
        assert sum(len(result.refused) for result in results) == 40
        [[count, distinct]] = await scene.rows(
            select(func.count(), func.count(execution_t.c.schedule_id.distinct())).select_from(execution_t)
        )
        assert (count, distinct) == (20, 20)

    async def test_the_ledger_keeps_one_row_for_a_time_even_if_the_schedule_is_set_back(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add(overlap={"policy": "allow"})
        lease = await scene.lead()
        await scene.fire(lease, schedule)
        [first] = await scene.executions(schedule)
        await scene.execute(
            update(schedule_t).values(next_fire_ts=schedule.next_fire_ts, next_run_ts=schedule.next_run_ts)
        )
        await scene.fire(lease, schedule)
        assert await scene.executions(schedule) == [first]

    async def test_a_manual_run_has_an_identity_of_its_own(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "allow"})
        manual = await scene.trigger(schedule)
        await scene.execute(
            update(execution_t)
            .where(execution_t.c.execution_id == manual)
            .values(fire_ts=schedule.next_fire_ts)
        )
        await scene.fire(await scene.lead(), schedule)
        rows = await scene.executions(schedule)
        assert sorted(row.triggered_by for row in rows) == [TriggeredBy.API, TriggeredBy.SCHEDULER]
        assert {row.fire_ts for row in rows} == {schedule.next_fire_ts}

    async def test_a_pause_that_has_ended_by_itself_is_lifted_by_the_next_fire(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.pause(schedule, until_ts=await scene.now() + timedelta(minutes=5))
        paused = await scene.get(schedule)
        assert paused.next_fire_ts is not None
        # Use another fire time than the one that the pause has already decided.
        due_ts = paused.next_fire_ts - timedelta(minutes=6) + timedelta(seconds=1)
        past = {
            "paused_until_ts": await scene.now() - timedelta(seconds=60),
            "next_fire_ts": due_ts,
            "next_run_ts": due_ts,
        }
        await scene.execute(update(schedule_t).values(past))
        fired = await scene.fire(await scene.lead(), schedule)
        assert len(fired.fired) == 1
        lifted = await scene.get(schedule)
        assert (lifted.paused, lifted.paused_until_ts, lifted.pause_reason) == (False, None, None)
        assert lifted.state is ScheduleState.ACTIVE

    async def test_a_pause_that_lasts_is_not_lifted_by_firing(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        until = {"paused": True, "paused_until_ts": await scene.now() + timedelta(minutes=5)}
        await scene.execute(update(schedule_t).values(until))
        assert len((await scene.commit(lease, firings)).refused) == 1

    async def test_what_can_not_be_planned_is_parked_with_its_reason_and_tried_again(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add()
        [due] = await scene.due(schedule)
        lease, now = await scene.lead(), await scene.now()
        reason = "there is no time zone Mars/Olympus"
        assert await scene.store.firing.park(lease, [UnplannedSchedule(due, reason)], now=now) == {
            due.schedule_id
        }
        parked = await scene.get(schedule)
        assert (parked.state, parked.state_reason) == (ScheduleState.ERROR, reason)
        assert parked.next_fire_ts == due.fire_ts, "nothing is decided by one who can't plan it"
        assert parked.next_run_ts is not None
        # The retry comes after half of the time that the schedule has been due (slightly over 30 s).
        assert timedelta(seconds=15) <= parked.next_run_ts - now <= timedelta(seconds=60)
        assert await scene.executions(schedule) == []
        # A scheduler that can plan it fires it and clears the error.
        await scene.make_due(schedule)
        assert len((await scene.fire(lease, schedule)).fired) == 1
        moved = await scene.get(schedule)
        assert (moved.state, moved.state_reason) == (ScheduleState.ACTIVE, None)

    async def test_what_was_mended_or_is_locked_is_not_parked(self, scene: Scene) -> None:
        schedules = [await scene.add(name) for name in ("mended", "locked", "free")]
        dues = await scene.due(*schedules)
        lease, now = await scene.lead(), await scene.now()
        mended, locked, free = schedules
        mended = await scene.edit(mended, description="mended")
        unplanned = [UnplannedSchedule(due, "broken") for due in dues]
        if scene.store.database.dialect.name == "sqlite":  # SQLite has one lock for the whole database
            found = await scene.store.firing.park(lease, unplanned, now=now)
            assert found == {locked.schedule_id, free.schedule_id}
        else:
            async with scene.store.database.engine(Pool.API).begin() as connection:
                await connection.execute(
                    select(schedule_t).where(schedule_t.c.schedule_id == locked.schedule_id).with_for_update()
                )
                found = await scene.store.firing.park(lease, unplanned, now=now)
            assert found == {free.schedule_id}
            assert await scene.get(locked) == locked
        assert await scene.get(mended) == mended

    async def test_a_deposed_leader_can_not_park(self, scene: Scene) -> None:
        schedule = await scene.add()
        [due] = await scene.due(schedule)
        old = await scene.lead(instance_id="one")
        await scene.lead(instance_id="two")
        with pytest.raises(FencedError):
            await scene.store.firing.park(old, [UnplannedSchedule(due, "broken")], now=await scene.now())
        assert (await scene.get(schedule)).state is ScheduleState.ACTIVE

    async def test_a_priority_of_a_newer_version_is_loaded_with_the_others(self, scene: Scene) -> None:
        newer, plain = await scene.add("newer"), await scene.add("plain")
        named = schedule_t.c.schedule_id == newer.schedule_id
        await scene.execute(update(schedule_t).where(named).values(priority="urgent"))
        until = await scene.now()
        found = await scene.store.firing.load(WHOLE, until=until, after=None, limit=10)
        unknown = {due.schedule_id: due.definition.unknown_priority for due in found}
        assert unknown == {newer.schedule_id: "urgent", plain.schedule_id: None}
        with pytest.raises(InvalidError, match="priority"):
            await scene.plan(newer)

    async def test_a_completed_run_count_does_not_come_back_with_an_edit(self, scene: Scene) -> None:
        schedule = await scene.add(max_runs=1)
        await scene.fire(await scene.lead(), schedule)
        assert (await scene.get(schedule)).state is ScheduleState.COMPLETED
        edited = await scene.edit(schedule, description="another")
        assert (edited.state, edited.run_count) == (ScheduleState.COMPLETED, 1)
        assert (await scene.get(schedule)).run_count == 1

    async def test_firing_names_what_is_next_exactly_as_planned(self, scene: Scene) -> None:
        schedule = await scene.add(jitter_seconds=20, age_s=100)
        [firing] = await scene.plan(schedule)
        await scene.commit(await scene.lead(), [firing])
        moved = await scene.get(schedule)
        assert moved.next_fire_ts is not None
        assert moved.next_run_ts is not None
        assert Next(moved.next_fire_ts, moved.next_run_ts) == firing.next
