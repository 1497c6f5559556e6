"""Conformance suite for schedule changes: planned under the schedule's lock, atomic, every version stored."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import FUNCTION, SOMEBODY, Scene, spec_of
from tests.engine import all_schedules

from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.errors import NameTakenError, NotFoundError, StaleVersionError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import Schedule, ScheduleState
from foliot.planning.change import Author, pause

EVENT = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue", "event_data": {}}
EVERYTHING: dict[str, Any] = {
    "description": 'a "quoted" ünïcode text',
    "priority": "high",
    "queue": "reports",
    "trigger": {"kind": "cron", "expression": "*/5 * * * *", "timezone": "Europe/Berlin"},
    "target": {
        "kind": "http",
        "url": "https://agent.example/run",
        "headers": {"X-One": "1"},
        "body": {"a": [1, None, "é"]},
    },
    "start_ts": datetime(2020, 1, 1, 2, 3, 4, 567, tzinfo=UTC),
    "end_ts": datetime(2300, 1, 1, tzinfo=UTC),
    "max_runs": 9,
    "timeout_seconds": 12.5,
    "misfire": {"policy": "fire_all", "grace_seconds": 7.25, "max_catchup": 3},
    "overlap": {"policy": "queue", "max_instances": 4},
    "retry": {"max_attempts": 5, "initial_delay_seconds": 0.5, "multiplier": 3, "max_delay_seconds": 60},
    "delivery": "at_most_once",
    "dst": {"gap": "skip", "repeat": "both"},
    "labels": {"team": "pay"},
    "window": {"days_of_week": [1, 7], "hours_of_day": [9], "timezone": "Europe/Berlin"},
    "jitter_seconds": 2.5,
}


class ChangesConformance:
    """Tests for changes of schedules. Fixture: `scene`."""

    async def test_a_schedule_is_read_back_exactly_as_it_was_written(self, scene: Scene) -> None:
        schedule = await scene.add("everything", age_s=0, **EVERYTHING)
        assert await scene.get(schedule) == schedule
        assert await scene.store.schedules.find(DEFAULT_HOST_ID, "everything") == schedule
        edited = await scene.edit(schedule, description="another")
        assert await scene.get(schedule) == edited
        paused = await scene.pause(schedule, until_ts=await scene.now() + timedelta(hours=1))
        assert await scene.get(schedule) == paused

    async def test_a_name_is_taken_once_per_host(self, scene: Scene) -> None:
        await scene.add("report")
        with pytest.raises(NameTakenError) as told:
            await scene.add("report")
        assert told.value.name == "report"
        host_id = await scene.add_host("another")
        other = await scene.add("report", host_id=host_id)
        assert (await scene.store.schedules.find(host_id, "report")) == other

    async def test_of_many_that_create_the_same_name_at_once_one_does(self, scene: Scene) -> None:
        stores = await scene.stores(4)
        scenes = [Scene(store, scene.open_another) for store in stores]
        results = await asyncio.gather(*(each.add("report") for each in scenes), return_exceptions=True)
        assert sum(1 for result in results if not isinstance(result, BaseException)) == 1
        assert sum(1 for result in results if isinstance(result, NameTakenError)) == 3

    async def test_a_schedule_can_not_be_renamed_to_a_taken_name(self, scene: Scene) -> None:
        await scene.add("one")
        two = await scene.add("two")
        with pytest.raises(NameTakenError):
            await scene.edit(two, name="one")
        assert await scene.get(two) == two

    async def test_every_version_is_kept_with_its_author_and_reason(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=0)
        await scene.edit(schedule, description="another")
        await scene.pause(schedule)
        await scene.resume(schedule)
        await scene.delete(schedule)
        rows = await scene.rows(select(schedule_version_t).order_by(schedule_version_t.c.aggregate_version))
        assert [(row.aggregate_version, row.change) for row in rows] == [
            (1, "created"),
            (2, "edited"),
            (3, "paused"),
            (4, "resumed"),
            (5, "deleted"),
        ]
        assert {(row.author, row.reason) for row in rows} == {("somebody", "because")}
        assert [row.document["description"] for row in rows] == ["", *["another"] * 4]

    async def test_a_change_that_says_nothing_new_makes_no_version(self, scene: Scene) -> None:
        schedule = await scene.add()
        assert await scene.edit(schedule, description="") == schedule
        assert (await scene.get(schedule)).aggregate_version == 1

    async def test_a_change_of_a_version_that_is_past_is_refused(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=0)
        await scene.edit(schedule, description="another")

        def change(version: int) -> Awaitable[Schedule]:
            return scene.store.schedules.change(
                schedule.schedule_id,
                lambda known, now: pause(known, now=now, author=SOMEBODY),
                SOMEBODY,
                expected_version=version,
            )

        before = await scene.everything()
        with pytest.raises(StaleVersionError) as told:
            await change(1)
        assert (told.value.expected, told.value.actual) == (1, 2)
        assert await scene.everything() == before
        assert (await change(2)).paused

    @pytest.mark.parametrize("target", [FUNCTION, EVENT], ids=["function", "event"])
    async def test_a_once_moved_back_to_a_time_that_is_decided_does_not_fire_again(
        self, scene: Scene, target: dict[str, Any]
    ) -> None:
        now = await scene.now()
        first = {"kind": "once", "at": (now - timedelta(seconds=5)).isoformat()}
        schedule = await scene.add(trigger=first, target=target)
        await scene.fire(await scene.lead(), schedule)
        away = await scene.edit(
            schedule, trigger={"kind": "once", "at": (now + timedelta(hours=1)).isoformat()}
        )
        assert away.state is ScheduleState.ACTIVE
        back = await scene.edit(schedule, trigger=first)
        assert (back.state, back.next_fire_ts, back.next_run_ts) == (ScheduleState.COMPLETED, None, None)
        assert await scene.get(schedule) == back
        assert back.run_count == 1
        assert len(await scene.executions(schedule)) == 1

    async def test_a_once_moved_back_to_a_time_that_is_not_decided_fires_once(self, scene: Scene) -> None:
        now = await scene.now()
        schedule = await scene.add(
            trigger={"kind": "once", "at": (now + timedelta(hours=1)).isoformat()}, age_s=0
        )
        passed = now - timedelta(seconds=5)
        back = await scene.edit(schedule, trigger={"kind": "once", "at": passed.isoformat()})
        assert (back.state, back.next_fire_ts) == (ScheduleState.ACTIVE, passed)
        fired = await scene.fire(await scene.lead(), schedule)
        [row] = await scene.executions(schedule)
        assert [each.execution_id for each in fired.fired] == [row.execution_id]

    @pytest.mark.parametrize("target", [FUNCTION, EVENT], ids=["function", "event"])
    async def test_what_was_decided_before_is_neither_reported_as_fired_nor_counted(
        self, scene: Scene, target: dict[str, Any]
    ) -> None:
        lease, now = await scene.lead(), await scene.now()
        at = now - timedelta(seconds=5)
        schedule = await scene.add(trigger={"kind": "once", "at": at.isoformat()}, target=target)
        await scene.fire(lease, schedule)
        # An older version writes this when a schedule is moved back in time.
        again = {"next_fire_ts": at, "next_run_ts": at, "state": "active"}
        await scene.execute(update(schedule_t).values(again))
        fired = await scene.fire(lease, schedule)
        assert (list(fired.fired), list(fired.skipped), list(fired.refused)) == ([], [], [])
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count) == (ScheduleState.COMPLETED, 1)
        assert len(await scene.executions(schedule)) == 1

    @pytest.mark.parametrize("max_runs", [None, 2])
    async def test_a_delay_whose_time_was_decided_before_goes_on_after_the_end_of_the_run(
        self, scene: Scene, max_runs: int | None
    ) -> None:
        lease = await scene.lead()
        delay = {"kind": "delay", "seconds": 30}
        schedule = await scene.add(trigger=delay, age_s=40, max_runs=max_runs)
        [due] = await scene.due(schedule)
        await scene.fire(lease, schedule)
        # An older version writes this when a schedule is moved back in time.
        again = {"next_fire_ts": due.fire_ts, "next_run_ts": due.run_ts, "state": "active"}
        await scene.execute(update(schedule_t).values(again))
        fired = await scene.fire(lease, schedule)
        assert (list(fired.fired), list(fired.refused)) == ([], [])
        moved = await scene.get(schedule)
        assert (moved.state, moved.next_fire_ts, moved.run_count) == (ScheduleState.ACTIVE, None, 1)
        await scene.settle(await scene.claim_one(), Status.SUCCESS)
        await scene.store.upkeep.restart_delays(lease, limit=10)
        assert (await scene.get(schedule)).next_fire_ts is not None

    async def test_a_recurring_schedule_goes_on_when_an_edit_finds_its_time_decided(
        self, scene: Scene
    ) -> None:
        lease = await scene.lead()
        schedule = await scene.add(age_s=210)
        [due] = await scene.due(schedule)
        await scene.fire(lease, schedule)
        # An older version writes this when a schedule is moved back in time.
        await scene.execute(update(schedule_t).values(next_fire_ts=due.fire_ts, next_run_ts=due.run_ts))
        hourly = {"kind": "interval", "frequency_unit": "HOURS", "frequency_time": 1}
        edited = await scene.edit(schedule, trigger=hourly)
        assert edited.state is ScheduleState.ACTIVE
        await scene.fire(lease, schedule)
        moved = await scene.get(schedule)
        assert (moved.state, moved.run_count) == (ScheduleState.ACTIVE, 1)
        assert moved.next_fire_ts is not None
        assert moved.next_fire_ts > await scene.now()

    async def test_changes_at_once_take_turns_and_none_is_lost(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=0)
        scenes = [Scene(store, scene.open_another) for store in await scene.stores(5)]
        await asyncio.gather(*(each.edit(schedule, description=f"by {n}") for n, each in enumerate(scenes)))
        assert (await scene.get(schedule)).aggregate_version == 6
        [*rows] = await scene.rows(select(schedule_version_t.c.aggregate_version))
        assert sorted(row[0] for row in rows) == [1, 2, 3, 4, 5, 6]

    async def test_another_hosts_schedule_is_not_found(self, scene: Scene) -> None:
        schedule = await scene.add()
        with pytest.raises(NotFoundError):
            await scene.store.schedules.change(
                schedule.schedule_id,
                lambda known, now: pause(known, now=now, author=SOMEBODY),
                SOMEBODY,
                host_id=new_id(),
            )
        assert await scene.get(schedule) == schedule

    async def test_what_does_not_exist_is_not_found(self, scene: Scene) -> None:
        schedules = scene.store.schedules
        assert await schedules.find(DEFAULT_HOST_ID, "none") is None
        for act in (
            schedules.get(new_id()),
            scene.store.executions.get(new_id()),
            schedules.trigger(new_id(), by=TriggeredBy.API, author=Author()),
            schedules.change(new_id(), lambda _known, _now: None, SOMEBODY),
        ):
            with pytest.raises(NotFoundError):
                await act

    async def test_deleting_frees_the_name_cancels_what_waits_and_lets_run_what_runs(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add("report", overlap={"policy": "allow"})
        await scene.trigger(schedule)
        running = await scene.claim_one()
        waiting = await scene.trigger(schedule)
        await scene.delete(schedule)

        schedules = scene.store.schedules
        assert await schedules.find(DEFAULT_HOST_ID, "report") is None
        assert await all_schedules(scene.store) == []
        assert (await scene.get(schedule)).deleted_ts is not None
        cancelled = await scene.execution(waiting)
        assert (cancelled.status, cancelled.reason) == (Status.CANCELLED, "deleted")
        assert await scene.claim() == []
        assert (await scene.store.work.renew("worker", [running], 60)).cancelled == frozenset()
        assert await scene.settle(running, Status.SUCCESS) == frozenset()
        with pytest.raises(NotFoundError):
            await scene.trigger(schedule)
        with pytest.raises(NotFoundError):
            await scene.delete(schedule)
        assert (await scene.add("report")).schedule_id != schedule.schedule_id

    @pytest.mark.parametrize("reason", ["paused", "inactive", "deleted"])
    async def test_a_time_already_due_is_decided_by_what_stops_it(self, scene: Scene, reason: str) -> None:
        schedule = await scene.add(age_s=3 * 60 + 30)
        match reason:
            case "paused":
                await scene.pause(schedule)
            case "inactive":
                await scene.edit(schedule, active=False)
            case _:
                await scene.delete(schedule)
        [row] = await scene.executions(schedule)
        assert (row.status, row.reason, row.triggered_by) == (Status.SKIPPED, reason, TriggeredBy.SCHEDULER)
        assert (row.missed_count, row.missed_from_ts) == (2, schedule.next_fire_ts)
        assert row.scheduler_instance_id is None

    async def test_a_time_already_due_fires_once_with_the_edited_version(self, scene: Scene) -> None:
        schedule = await scene.add()
        lease = await scene.lead()
        old = await scene.plan(schedule)
        await scene.edit(schedule, target=FUNCTION | {"name": "other"})
        assert len((await scene.commit(lease, old)).refused) == 1
        await scene.fire(lease, schedule)
        [row] = await scene.executions(schedule)
        assert (row.fire_ts, row.aggregate_version) == (schedule.next_fire_ts, 2)

    async def test_resuming_goes_on_with_a_time_to_come(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.pause(schedule)
        resumed = await scene.resume(schedule)
        assert resumed.next_fire_ts is not None
        assert schedule.next_fire_ts is not None
        assert resumed.next_fire_ts > await scene.now()
        assert (resumed.next_fire_ts - schedule.next_fire_ts) % timedelta(minutes=1) == timedelta()
        assert (resumed.state, resumed.paused) == (ScheduleState.ACTIVE, False)
        assert len(await scene.executions(schedule)) == 1

    async def test_a_manual_run_says_who_asked_and_with_what(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=0, priority="low", queue="reports")
        before = await scene.now()
        wanted = new_id()
        told = await scene.store.schedules.trigger(
            schedule.schedule_id,
            by=TriggeredBy.MANUAL,
            author=Author("ann"),
            args={"day": "monday"},
            execution_id=wanted,
        )
        assert told == wanted
        row = await scene.execution(wanted)
        assert (row.triggered_by, row.triggered_by_user, row.args) == (
            TriggeredBy.MANUAL,
            "ann",
            {"day": "monday"},
        )
        assert (row.status, row.queue, row.aggregate_version) == (Status.PENDING, "reports", 1)
        assert before <= row.fire_ts <= await scene.now()
        assert (await scene.get(schedule)) == schedule, "its own times stay as they are"

    async def test_the_ledger_is_read_latest_first(self, scene: Scene) -> None:
        schedule = await scene.add(age_s=5 * 60 + 30, misfire={"policy": "fire_all"})
        await scene.fire(await scene.lead(), schedule)
        rows = await scene.store.schedules.executions(schedule.schedule_id, limit=3)
        times = [row.fire_ts for row in rows]
        assert times == sorted(times, reverse=True)
        assert schedule.next_fire_ts is not None
        assert times[0] == schedule.next_fire_ts + timedelta(minutes=4)

    async def test_a_definition_of_every_target_kind_is_kept(self, scene: Scene) -> None:
        targets = [
            {"kind": "event", "event_topic": "t", "event_type": "e", "event_data": {"a": 1}},
            {"kind": "celery", "task": "proj.clean", "args": [1], "kwargs": {"b": None}},
        ]
        for number, target in enumerate(targets):
            schedule = await scene.add(f"number-{number}", target=target)
            assert (await scene.get(schedule)).spec == spec_of(f"number-{number}", target=target)
