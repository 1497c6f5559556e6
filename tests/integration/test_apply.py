"""Keeping schedules in step with files: the plan, what it refuses, what it does."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.commands import Commands
from foliot.commands.apply import AppliedStep, ApplyAction, ApplyStep
from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.rows.registry_rows import TaskRecord
from foliot.db.tables.schedules import schedule_t
from foliot.instance.declarations import Declarer
from foliot.instance.store import SqlStore
from foliot.model.errors import InvalidError
from foliot.model.event import Observers
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import ManagedBy, ScheduleSpec, ScheduleState
from foliot.planning.change import Author
from foliot.timing.clock import ClusterClock, SystemClock
from tests.engine import all_schedules

ANN = Author("ann")
HOURLY = {"kind": "interval", "hours": 1}


@pytest.fixture
async def commands(store: SqlStore) -> Commands:
    schema = {"type": "object", "properties": {"region": {"type": "string"}}, "additionalProperties": False}
    task = TaskRecord("clean", "Clean", "", "app.clean", "async_function", None, 300.0, schema)
    await store.registry.register_tasks([task])
    return Commands(store.database, LocalHints(), Observers(()), ClusterClock(SystemClock()))


def spec(name: str, **fields: Any) -> ScheduleSpec:
    target = {"kind": "function", "name": "clean", "args": fields.pop("args", {})}
    return ScheduleSpec.parse({"name": name, "trigger": HOURLY, "target": target, **fields})


async def plan(commands: Commands, *specs: ScheduleSpec, **options: Any) -> list[ApplyStep]:
    given: dict[str, Any] = {"source": "files", "author": ANN, "prunes": False, "adopts": False, **options}
    return await commands.apply.plan(DEFAULT_HOST_ID, specs, **given)


async def apply(commands: Commands, *specs: ScheduleSpec, **options: Any) -> list[AppliedStep]:
    steps = await plan(commands, *specs, **options)
    source = options.get("source", "files")
    return await commands.apply.carry_out(DEFAULT_HOST_ID, steps, source=source, author=ANN)


def actions(steps: list[ApplyStep]) -> dict[str, str]:
    return {step.name: step.action.value for step in steps}


async def test_what_is_not_there_is_made_and_what_is_the_same_is_left_alone(
    store: SqlStore, commands: Commands
) -> None:
    assert actions(await plan(commands, spec("a"), spec("b"))) == {"a": "create", "b": "create"}
    assert await store.schedules.find(DEFAULT_HOST_ID, "a") is None
    await apply(commands, spec("a"), spec("b"))
    assert actions(await plan(commands, spec("a"), spec("b"))) == {"a": "unchanged", "b": "unchanged"}
    made = await store.schedules.find(DEFAULT_HOST_ID, "a")
    assert made is not None
    assert (made.managed_by, made.managed_source, made.aggregate_version) == (ManagedBy.FILE, "files", 1)


async def test_a_plan_says_what_would_change_and_carrying_it_out_changes_it(
    store: SqlStore, commands: Commands
) -> None:
    await apply(commands, spec("a"))
    [step] = await plan(commands, spec("a", queue="slow"))
    assert step.action is ApplyAction.UPDATE
    assert [(each.pointer, each.before, each.after) for each in step.changes] == [
        ("/queue", "default", "slow")
    ]
    await apply(commands, spec("a", queue="slow"))
    changed = await store.schedules.find(DEFAULT_HOST_ID, "a")
    assert changed is not None
    assert (changed.spec.queue, changed.aggregate_version) == ("slow", 2)


async def test_only_what_is_the_sources_own_is_pruned_and_only_when_asked(
    store: SqlStore, commands: Commands
) -> None:
    await commands.schedules.create(DEFAULT_HOST_ID, spec("by hand"), ANN)
    await apply(commands, spec("ours"), spec("kept"))
    await apply(commands, spec("theirs"), source="others")
    assert actions(await plan(commands, spec("kept"))) == {"kept": "unchanged"}
    pruning = await plan(commands, spec("kept"), prunes=True)
    assert actions(pruning) == {"kept": "unchanged", "ours": "delete"}
    await apply(commands, spec("kept"), prunes=True)
    left = {each.spec.name for each in await all_schedules(store)}
    assert left == {"by hand", "kept", "theirs"}


@pytest.mark.parametrize("managed_by", [ManagedBy.API, ManagedBy.UI])
async def test_what_people_made_is_taken_over(
    store: SqlStore, commands: Commands, managed_by: ManagedBy
) -> None:
    await commands.schedules.create(DEFAULT_HOST_ID, spec("a"), ANN, managed_by=managed_by)
    await apply(commands, spec("a", queue="slow"))
    found = await store.schedules.find(DEFAULT_HOST_ID, "a")
    assert found is not None
    assert (found.managed_by, found.spec.queue) == (ManagedBy.FILE, "slow")


async def test_what_code_or_other_files_manage_is_a_conflict_until_it_is_adopted(
    store: SqlStore, commands: Commands
) -> None:
    await commands.schedules.create(DEFAULT_HOST_ID, spec("code"), ANN, managed_by=ManagedBy.CODE)
    await apply(commands, spec("file"), source="others")
    changed = [spec("code", queue="slow"), spec("file", queue="slow")]
    assert actions(await plan(commands, *changed)) == {"code": "conflict", "file": "conflict"}
    assert actions(await plan(commands, *changed, adopts=True)) == {"code": "update", "file": "update"}
    await apply(commands, *changed, adopts=True)
    for name in ("code", "file"):
        found = await store.schedules.find(DEFAULT_HOST_ID, name)
        assert found is not None
        assert (found.managed_source, found.spec.queue) == ("files", "slow")


async def test_adopting_what_is_the_same_changes_hands_and_nothing_else(
    store: SqlStore, commands: Commands
) -> None:
    made = await commands.schedules.create(DEFAULT_HOST_ID, spec("a"), ANN, managed_by=ManagedBy.CODE)
    await apply(commands, spec("a"), adopts=True)
    found = await store.schedules.get(made.schedule_id)
    assert (found.managed_by, found.spec, found.next_fire_ts) == (
        ManagedBy.FILE,
        made.spec,
        made.next_fire_ts,
    )


async def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_written(
    store: SqlStore, commands: Commands
) -> None:
    wrong = [
        spec("good"),
        spec("zone", window={"days_of_week": [1], "timezone": "Europe/Berln"}),
        spec("args", args={"nowhere": 1}),
        spec("calendar", calendars=["holidays"]),
    ]
    with pytest.raises(InvalidError) as refused:
        await plan(commands, *wrong)
    pointers = [problem.pointer for problem in refused.value.problems]
    assert pointers == [
        "/schedules/1/window/timezone",
        "/schedules/2/target/args",
        "/schedules/3/calendars/0",
    ]
    assert await all_schedules(store) == []


async def test_a_name_that_is_there_twice_is_refused(commands: Commands) -> None:
    with pytest.raises(InvalidError, match=r"schedules\.1\.name: is the name of schedule 0 too"):
        await plan(commands, spec("a"), spec("a", queue="slow"))


async def test_a_schedule_that_changed_since_the_plan_is_left_alone_and_told(
    store: SqlStore, commands: Commands
) -> None:
    await apply(commands, spec("a"), spec("b"))
    steps = await plan(commands, spec("a", queue="slow"), spec("b", queue="slow"))
    known = await store.schedules.find(DEFAULT_HOST_ID, "a")
    assert known is not None
    await commands.schedules.pause(known.schedule_id, ANN)
    done = await commands.apply.carry_out(DEFAULT_HOST_ID, steps, source="files", author=ANN)
    assert [type(each.error).__name__ for each in done] == ["StaleVersionError", "NoneType"]


async def test_a_schedule_that_could_not_be_planned_comes_back_when_it_is_applied_or_declared_again(
    store: SqlStore, commands: Commands
) -> None:
    parked = {"state": "error", "state_reason": "broken", "next_fire_ts": None, "next_run_ts": None}

    async def park(connection: AsyncConnection) -> None:
        await connection.execute(update(schedule_t).values(parked))

    await apply(commands, spec("a"))
    await store.database.write(Pool.API, park)
    assert actions(await plan(commands, spec("a"))) == {"a": "update"}
    await apply(commands, spec("a"))
    assert await _is_active(store)
    assert actions(await plan(commands, spec("a"))) == {"a": "unchanged"}

    await store.database.write(Pool.API, park)
    await Declarer(store.schedules, commands.schedules).declare(
        DEFAULT_HOST_ID, spec("a"), ANN, ManagedBy.FILE
    )
    assert await _is_active(store)


async def _is_active(store: SqlStore) -> bool:
    found = await store.schedules.find(DEFAULT_HOST_ID, "a")
    assert found is not None
    return found.state is ScheduleState.ACTIVE and found.next_run_ts is not None
