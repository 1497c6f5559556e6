"""A schedule changes while the leader has the old version in its wheel, and no hint tells it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from foliot.instance.runtime import Instance
from foliot.instance.store import SqlStore
from foliot.model.event import SchedulesLoaded
from foliot.model.execution import Status
from foliot.model.instance_events import LeaderElected
from foliot.model.schedule import Schedule
from foliot.planning.change import delete, edit, pause
from tests.engine import AUTHOR, add, every_second, make_instance, seen, spec, until
from tests.ledger import assert_exact

SECOND = timedelta(seconds=1)
SOON = {"kind": "interval", "seconds": 2}


@pytest.fixture
async def leader(database_url: str, store: SqlStore) -> AsyncIterator[Instance]:
    """A leader whose hints are its own: changes made through `store` reach it only by polling."""
    instance, recorder = make_instance(database_url, hints="off")
    await instance.start()
    await until(lambda: bool(seen(recorder, LeaderElected)))
    yield instance
    await instance.stop()


async def in_the_wheel(leader: Instance, store: SqlStore, **fields: Any) -> Schedule:
    """A schedule that is due soon, and that the leader remembers as it is now."""
    schedule = await add(store, spec("watched", SOON, **fields))
    shard = leader.scheduler and leader.scheduler.shards[0]
    assert shard
    loader = shard.loader

    def is_remembered() -> bool:
        if loader.term is not None and schedule.schedule_id in loader.term.wheel:
            return True
        loader.hint((schedule.schedule_id,))
        return False

    await until(is_remembered)
    return schedule


async def after_its_time(store: SqlStore, schedule: Schedule) -> None:
    """Wait until the leader has certainly acted on the time that was next."""
    other = await add(store, every_second("other"))

    async def later_one_fired() -> bool:
        assert schedule.next_run_ts is not None
        end = schedule.next_run_ts + SECOND / 2
        return any(row.fire_ts > end for row in await store.schedules.executions(other.schedule_id))

    await until(later_one_fired)


async def test_an_edit_fires_once_with_the_new_version(leader: Instance, store: SqlStore) -> None:
    schedule = await in_the_wheel(leader, store)
    edited = schedule.spec.model_copy(update={"timeout_seconds": 7.0})
    changed = await store.schedules.change(
        schedule.schedule_id, lambda old, now: edit(old, edited, now=now, author=AUTHOR), AUTHOR
    )
    assert changed.next_fire_ts == schedule.next_fire_ts, "other edits do not move the cadence"
    await after_its_time(store, schedule)
    rows = [
        row
        for row in await store.schedules.executions(schedule.schedule_id)
        if row.fire_ts == schedule.next_fire_ts
    ]
    assert [(row.status, row.aggregate_version) for row in rows] == [(Status.PENDING, 2)]


async def test_a_changed_trigger_counts_from_the_edit(leader: Instance, store: SqlStore) -> None:
    schedule = await in_the_wheel(leader, store)
    edited = schedule.spec.model_copy(update={"trigger": every_second("x").trigger})
    changed = await store.schedules.change(
        schedule.schedule_id, lambda old, now: edit(old, edited, now=now, author=AUTHOR), AUTHOR
    )
    await after_its_time(store, changed)
    rows = await store.schedules.executions(schedule.schedule_id)
    assert changed.next_fire_ts is not None
    assert_exact(rows, SECOND, changed.next_fire_ts)
    assert {row.aggregate_version for row in rows} == {2}


async def test_a_pause_holds_it_back(leader: Instance, store: SqlStore) -> None:
    schedule = await in_the_wheel(leader, store)
    await store.schedules.change(
        schedule.schedule_id, lambda old, now: pause(old, now=now, author=AUTHOR), AUTHOR
    )
    await after_its_time(store, schedule)
    assert await store.schedules.executions(schedule.schedule_id) == []


async def test_a_pause_between_nominal_and_jittered_time_is_in_the_ledger(
    leader: Instance, store: SqlStore
) -> None:
    schedule = await in_the_wheel(leader, store, jitter_seconds=60)

    async def nominal_has_passed() -> bool:
        assert schedule.next_fire_ts is not None
        return await store.now() >= schedule.next_fire_ts

    await until(nominal_has_passed)
    await store.schedules.change(
        schedule.schedule_id, lambda old, now: pause(old, now=now, author=AUTHOR), AUTHOR
    )
    await after_its_time(store, schedule)
    rows = await store.schedules.executions(schedule.schedule_id)
    first = rows[-1]
    assert first.fire_ts == schedule.next_fire_ts
    # Either it was paused before its jittered time came, or it had fired already: never both.
    assert len(rows) == 1
    assert (first.status, first.reason) in ((Status.SKIPPED, "paused"), (Status.PENDING, None))


async def test_a_deleted_schedule_never_fires(leader: Instance, store: SqlStore) -> None:
    schedule = await in_the_wheel(leader, store)
    await store.schedules.change(
        schedule.schedule_id, lambda old, now: delete(old, now=now, author=AUTHOR), AUTHOR
    )
    await after_its_time(store, schedule)
    assert await store.schedules.executions(schedule.schedule_id) == []


async def test_resharding_under_way_loses_and_doubles_nothing(leader: Instance, store: SqlStore) -> None:
    schedules = [await add(store, every_second(f"s{number}")) for number in range(12)]
    for count in (4, 2, 5):
        await store.leases.reshard(count)
        before = len(await store.schedules.executions(schedules[0].schedule_id))

        async def went_on(before: int = before) -> bool:
            rows = [await store.schedules.executions(each.schedule_id) for each in schedules]
            return min(len(each) for each in rows) >= before + 2

        await until(went_on)
    for schedule in schedules:
        assert schedule.next_fire_ts is not None
        rows = await store.schedules.executions(schedule.schedule_id)
        assert_exact(rows, SECOND, schedule.next_fire_ts)


async def test_an_edit_reaches_the_leader_as_one_row(leader: Instance, store: SqlStore) -> None:
    for number in range(50):
        await add(store, spec(f"s{number}", {"kind": "interval", "hours": 1}))
    schedule = await in_the_wheel(leader, store)
    loaded: list[SchedulesLoaded] = []

    class Watch:
        def notify(self, event: Any) -> None:
            if isinstance(event, SchedulesLoaded):
                loaded.append(event)

    shard = leader.scheduler and leader.scheduler.shards[0]
    assert shard
    loader = shard.loader
    await until(lambda: not loader.wake.is_set and not loader._hinted)
    leader.observer.add(Watch())
    shard.loader.hint((schedule.schedule_id,))
    await until(lambda: bool(loaded))
    found = {(event.count, event.cause) for event in loaded}
    assert (1, "hint") in found
    # A late hint of one that was added may come besides; what is not hinted at is not read.
    assert all(count < 50 and cause == "hint" for count, cause in found)
