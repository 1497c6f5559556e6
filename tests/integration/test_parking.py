"""A schedule that can't be planned, or not by this version, delays only itself and recovers by itself."""

from typing import Any

import pytest
from sqlalchemy import update

from foliot import event
from foliot.db.dialect import Pool
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.errors import UnreadableError
from foliot.model.event import ScheduleParked
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleState
from foliot.planning.change import edit, pause, resume
from foliot.planning.events import UnreadableTargetError
from foliot.queries.schedule_list import ScheduleFilter
from foliot.scheduler.firing_sql import FiringStatements
from tests.engine import AUTHOR, add, every_second, running, seen, until

MARS = {"kind": "cron", "expression": "* * * * * *", "timezone": "Mars/Olympus"}
"""As after a change of the zones that there are."""
UNPLANNABLE: dict[str, dict[str, Any]] = {
    "a zone that this tzdata lacks": {"trigger": MARS},
    "a kind of trigger": {"trigger": {"kind": "solstice"}},
    "a value of a policy": {"policies": {"overlap": {"policy": "of_the_next_release"}}},
    "a priority": {"priority": "urgent"},
}


async def put(store: SqlStore, schedule: Schedule, values: dict[str, Any]) -> None:
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(
            update(schedule_t).where(schedule_t.c.schedule_id == schedule.schedule_id).values(values)
        )


async def stored(store: SqlStore, schedule: Schedule) -> Any:
    async with store.database.read(Pool.API) as connection:
        found = await connection.execute(
            schedule_t.select().where(schedule_t.c.schedule_id == schedule.schedule_id)
        )
        return found.one()


async def until_fired(store: SqlStore, schedule: Schedule, count: int = 1) -> None:
    async def has_fired() -> bool:
        rows = await store.schedules.executions(schedule.schedule_id)
        return sum(row.status is not Status.SKIPPED for row in rows) >= count

    await until(has_fired)


@pytest.mark.parametrize("what", UNPLANNABLE)
async def test_what_this_version_can_not_plan_delays_only_itself_and_recovers(
    store: SqlStore, database_url: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.planning.fire.MIN_PARKED_S", 0.5)
    newer = await add(store, every_second("newer"))
    fine = await add(store, every_second("fine", overlap={"policy": "allow"}))
    before = await stored(store, newer)
    await put(store, newer, UNPLANNABLE[what])
    async with running(database_url) as (_, recorder):
        await until(lambda: bool(seen(recorder, ScheduleParked)))
        await until_fired(store, fine, 2)
        row = await stored(store, newer)
        assert row.state == "error"
        assert row.state_reason
        assert row.next_fire_ts == newer.next_fire_ts, "it is left to those who can plan it"
        assert await store.schedules.executions(newer.schedule_id) == []
        # Tried again, it is not reported again.
        await put(store, newer, {"next_run_ts": await store.now()})

        async def was_tried_again() -> bool:
            return bool((await stored(store, newer)).next_run_ts > await store.now())

        await until(was_tried_again)
        assert len(seen(recorder, ScheduleParked)) == 1
        # As when an instance of the newer version leads.
        restored = {name: getattr(before, name) for name in UNPLANNABLE[what]}
        await put(store, newer, {**restored, "next_run_ts": await store.now()})
        await until_fired(store, newer)
    row = await stored(store, newer)
    assert (row.state, row.state_reason) == ("active", None)


async def test_event_targets_that_can_not_be_read_are_parked_together(
    store: SqlStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fire, errors = FiringStatements.fire_events, []

    async def watch(self: FiringStatements, *arguments: Any, **options: Any) -> Any:
        try:
            return await fire(self, *arguments, **options)
        except UnreadableTargetError as error:
            errors.append(error)
            raise

    monkeypatch.setattr(FiringStatements, "fire_events", watch)
    due = event("orders", "OrderDue", {"region": "eu"})
    broken = [await add(store, every_second(f"broken-{number}", target=due)) for number in range(5)]
    fine = await add(store, every_second("fine", target=due))
    for schedule in broken:
        await put(store, schedule, {"target": {"kind": "event", "event_topic": 7}})
    now = await store.now()
    for schedule in (*broken, fine):
        await put(store, schedule, {"next_fire_ts": now, "next_run_ts": now})
    async with running(database_url) as (_, recorder):
        await until(lambda: len(seen(recorder, ScheduleParked)) == 5)
        await until_fired(store, fine)
    assert set(errors[0].reasons) == {each.schedule_id for each in broken}
    assert [(await stored(store, each)).state for each in broken] == ["error"] * 5


async def park_for_good(store: SqlStore, schedule: Schedule, **also: Any) -> None:
    """As versions before did it."""
    nothing = {"next_fire_ts": None, "next_run_ts": None}
    await put(store, schedule, {"state": "error", "state_reason": "broken", **nothing, **also})


async def test_saving_the_definition_again_brings_a_parked_schedule_back(
    store: SqlStore, database_url: str
) -> None:
    schedule = await add(store, every_second("broken"))
    await park_for_good(store, schedule)
    saved = await store.schedules.change(
        schedule.schedule_id, lambda old, now: edit(old, old.spec, now=now, author=AUTHOR), AUTHOR
    )
    assert (saved.state, saved.state_reason) == (ScheduleState.ACTIVE, None)
    async with running(database_url):
        await until_fired(store, schedule)


@pytest.mark.parametrize("is_paused", [False, True])
async def test_a_pause_and_its_end_bring_a_parked_schedule_back(
    store: SqlStore, database_url: str, is_paused: bool
) -> None:
    schedule = await add(store, every_second("broken"))
    await park_for_good(store, schedule, paused=is_paused)
    if not is_paused:
        await store.schedules.change(
            schedule.schedule_id, lambda old, now: pause(old, now=now, author=AUTHOR), AUTHOR
        )
    resumed = await store.schedules.change(
        schedule.schedule_id, lambda old, now: resume(old, now=now, author=AUTHOR), AUTHOR
    )
    assert (resumed.state, resumed.state_reason) == (ScheduleState.ACTIVE, None)
    async with running(database_url):
        await until_fired(store, schedule)


async def test_a_definition_that_can_not_be_planned_can_be_mended_paused_and_deleted(
    store: SqlStore, database_url: str
) -> None:
    schedule = await add(store, every_second("broken"))
    await put(store, schedule, {"trigger": MARS})
    async with running(database_url) as (_, recorder):
        await until(lambda: bool(seen(recorder, ScheduleParked)))
    paused = await store.schedules.change(
        schedule.schedule_id, lambda old, now: pause(old, now=now, author=AUTHOR), AUTHOR
    )
    assert paused.state is ScheduleState.PAUSED
    (row,) = await store.schedules.executions(schedule.schedule_id)
    assert (row.status, row.reason, row.fire_ts) == (Status.SKIPPED, "paused", schedule.next_fire_ts)
    await put(store, schedule, {"paused": False, "state": "error", "next_fire_ts": await store.now()})
    await put(store, schedule, {"next_run_ts": await store.now()})
    mended = await store.schedules.change(
        schedule.schedule_id,
        lambda old, now: edit(old, every_second("mended"), now=now, author=AUTHOR),
        AUTHOR,
    )
    assert (mended.state, mended.state_reason) == (ScheduleState.ACTIVE, None)
    assert mended.next_run_ts is not None
    decided = await store.schedules.executions(schedule.schedule_id)
    assert {row.reason for row in decided} == {"paused", "error"}
    async with running(database_url):
        await until_fired(store, schedule)


async def test_an_unknown_field_is_read_but_never_written_back_without_it(store: SqlStore) -> None:
    newer = await add(store, every_second("newer"))
    row = await stored(store, newer)
    overlap = {**row.policies["overlap"], "field_of_the_next_release": 1}
    await put(store, newer, {"policies": {**row.policies, "overlap": overlap}})
    assert (await store.schedules.get(newer.schedule_id)).spec == newer.spec
    with pytest.raises(UnreadableError, match="field_of_the_next_release"):
        await store.schedules.change(
            newer.schedule_id, lambda old, now: pause(old, now=now, author=AUTHOR), AUTHOR
        )
    assert (await stored(store, newer)).policies["overlap"] == overlap


async def test_a_list_goes_on_without_what_only_a_newer_version_can_read(store: SqlStore) -> None:
    schedules = [await add(store, every_second(name)) for name in ("a", "b", "c")]
    await put(store, schedules[1], {"policies": {"overlap": {"policy": "of_the_next_release"}}})
    wanted = ScheduleFilter(host_id=DEFAULT_HOST_ID)
    first = await store.schedule_list.page(wanted, limit=2)
    assert [item.schedule.spec.name for item in first.items] == ["a"]
    assert first.next is not None
    rest = await store.schedule_list.page(wanted, limit=2, after=first.next)
    assert [item.schedule.spec.name for item in rest.items] == ["c"]
    with pytest.raises(UnreadableError, match="newer version"):
        await store.schedules.get(schedules[1].schedule_id)
