"""A leader and its calendars: what it skips, how it learns of changes, what it does without one."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete

from foliot.commands.admission import DefinitionChecker
from foliot.commands.schedules import ScheduleCommands
from foliot.db.dialect import Pool
from foliot.db.hints import Hint, LocalHints
from foliot.db.tables.schedules import calendar_t
from foliot.instance.declarations import Declarer
from foliot.instance.runtime import Instance
from foliot.instance.store import SqlStore
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError
from foliot.model.event import ScheduleParked
from foliot.model.execution import Execution, Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import LeaderElected
from foliot.model.schedule import ManagedBy, Schedule, ScheduleSpec, ScheduleState
from foliot.planning.admit import CheckTarget
from foliot.scheduler.calendars_sql import Calendars
from foliot.testing.app import Recorder
from tests.engine import AUTHOR, add, every_second, running, seen, until

FAR_APART = {"poll_seconds": 600}


async def put(store: SqlStore, name: str = "closed", **fields: Any) -> None:
    spec = CalendarSpec.parse({"name": name, **fields})
    await store.calendars.put(DEFAULT_HOST_ID, spec, AUTHOR)


async def these_days(store: SqlStore) -> list[dict[str, str]]:
    """Today with a day around it, so that no midnight ends a test."""
    today, day = (await store.now()).date(), timedelta(days=1)
    return [{"from": f"{today - day}", "to": f"{today + day}"}]


async def rows(store: SqlStore, schedule: Schedule) -> Sequence[Execution]:
    return await store.schedules.executions(schedule.schedule_id)


async def until_fired(store: SqlStore, schedule: Schedule) -> None:
    async def has_fired() -> bool:
        return any(row.status is not Status.SKIPPED for row in await rows(store, schedule))

    await until(has_fired)


async def until_decided(store: SqlStore, schedule: Schedule, count: int = 2) -> None:
    async def is_decided() -> bool:
        return len(await rows(store, schedule)) >= count

    await until(is_decided)


def tell(instance: Instance, *schedule_ids: UUID) -> None:
    instance.hints.send(Hint.SCHEDULES, schedule_ids)


async def test_times_on_an_excluded_day_are_skipped_and_say_why(store: SqlStore, database_url: str) -> None:
    await put(store, days=await these_days(store))
    closed = await add(store, every_second("closed", calendars=["closed"]))
    open_ = await add(store, every_second("open"))
    async with running(database_url):
        await until_decided(store, closed)
        await until_fired(store, open_)
    assert {(row.status, row.reason) for row in await rows(store, closed)} == {(Status.SKIPPED, "calendar")}
    assert "calendar" not in {row.reason for row in await rows(store, open_)}


async def test_a_changed_calendar_is_noticed_by_polling(store: SqlStore, database_url: str) -> None:
    await put(store, days=await these_days(store))
    schedule = await add(store, every_second("each", calendars=["closed"]))
    async with running(database_url, hints="off"):
        await until_decided(store, schedule, 1)
        await put(store)
        await until_fired(store, schedule)


async def test_a_changed_calendar_is_noticed_by_a_hint(store: SqlStore, database_url: str) -> None:
    await put(store, days=await these_days(store))
    schedule = await add(store, every_second("each", calendars=["closed"]))
    async with running(database_url, **FAR_APART) as (instance, _):
        await until_decided(store, schedule, 1)
        await put(store)
        tell(instance)
        await until_fired(store, schedule)


async def test_a_calendar_newer_than_the_leaders_knowledge_parks_no_schedule(
    store: SqlStore, database_url: str
) -> None:
    async with running(database_url, **FAR_APART) as (instance, recorder):
        await until(lambda: bool(seen(recorder, LeaderElected)))
        first = await add(store, every_second("first"))
        tell(instance, first.schedule_id)
        await until_fired(store, first)  # so it has read what calendars there are: none
        await put(store, days=await these_days(store))
        schedule = await add(store, every_second("each", calendars=["closed"]))
        tell(instance, schedule.schedule_id)
        await until_decided(store, schedule)
        assert not seen(recorder, ScheduleParked)
    assert {row.reason for row in await rows(store, schedule)} == {"calendar"}


async def test_a_schedule_whose_calendar_is_gone_is_parked_and_the_others_fire(
    store: SqlStore, database_url: str
) -> None:
    await put(store)
    broken = await add(store, every_second("broken", calendars=["closed"]))
    fine = await add(store, every_second("fine"))
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(delete(calendar_t))
    async with running(database_url) as (_, recorder):
        await until(lambda: bool(seen(recorder, ScheduleParked)))
        await until_fired(store, fine)
    parked = await store.schedules.get(broken.schedule_id)
    assert parked.state is ScheduleState.ERROR
    assert parked.state_reason == 'calendars.0: there is no calendar named "closed"'
    assert await rows(store, broken) == [], "nothing is decided before it is back, or mended"


@pytest.mark.parametrize(
    "document",
    [
        {"name": "closed", "timezone": "Mars/Olympus"},
        {"name": "closed", "countries": [{"country": "Atlantis"}]},
        {"name": "closed", "weekdays": "every"},
    ],
)
async def test_a_calendar_that_can_not_be_understood_any_more_parks_its_own_schedules_only(
    store: SqlStore, database_url: str, document: dict[str, Any]
) -> None:
    await put(store)
    await put(store, "fine", weekdays=[])
    broken = await add(store, every_second("broken", calendars=["closed"]))
    fine = await add(store, every_second("fine", calendars=["fine"]))
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        named = calendar_t.c.calendar_name == "closed"
        await connection.execute(calendar_t.update().where(named).values(document=document))
    async with running(database_url) as (_, recorder):
        await until_fired(store, fine)
        await until(lambda: bool(seen(recorder, ScheduleParked)))
    assert (await store.schedules.get(broken.schedule_id)).state is ScheduleState.ERROR


async def test_calendars_are_read_once_while_none_changes(
    store: SqlStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, days=await these_days(store))
    schedule = await add(store, every_second("each", calendars=["closed"]))
    reads, looks = [], []
    snapshot, revision = Calendars.snapshot, Calendars.revision

    async def reading(self: Calendars) -> dict[tuple[UUID, str], CalendarSpec]:
        reads.append(1)
        return await snapshot(self)

    async def looking(self: Calendars) -> int:
        looks.append(1)
        return await revision(self)

    monkeypatch.setattr(Calendars, "snapshot", reading)
    monkeypatch.setattr(Calendars, "revision", looking)
    # A lease that a busy machine does not outlast: each term reads them anew.
    async with running(database_url, lease_ttl_seconds=30):
        await until_decided(store, schedule)
        await until(lambda: len(looks) >= 5)
        assert len(reads) == 1


# --- declaring -----------------------------------------------------------------------------------------


class AnyTarget(DefinitionChecker):
    async def checker(self, spec: ScheduleSpec) -> CheckTarget:
        return lambda _spec: []


def declarer(store: SqlStore) -> Declarer:
    return Declarer(
        store.schedules, ScheduleCommands(store.database, LocalHints(), Recorder(), AnyTarget(store.database))
    )


async def test_declaring_with_a_name_that_is_not_there_is_refused_with_the_nearest(store: SqlStore) -> None:
    await put(store, "holidays")
    spec = every_second("each", calendars=["holiday"])
    with pytest.raises(InvalidError, match=r'calendars\.0: .* \(did you mean "holidays"\?\)'):
        await declarer(store).declare(DEFAULT_HOST_ID, spec, AUTHOR, ManagedBy.CODE)
    assert await store.schedules.find(DEFAULT_HOST_ID, "each") is None


async def test_declaring_and_declaring_again_with_a_name_that_is_there_is_taken(store: SqlStore) -> None:
    await put(store, "holidays")
    declare = declarer(store).declare
    plain = await declare(DEFAULT_HOST_ID, every_second("each"), AUTHOR, ManagedBy.CODE)
    spec = every_second("each", calendars=["holidays"])
    edited = await declare(DEFAULT_HOST_ID, spec, AUTHOR, ManagedBy.CODE)
    assert (edited.schedule_id, edited.spec.calendars) == (plain.schedule_id, ("holidays",))
    with pytest.raises(InvalidError, match="closed"):
        await declare(DEFAULT_HOST_ID, every_second("each", calendars=["closed"]), AUTHOR, ManagedBy.CODE)
