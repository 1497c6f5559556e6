"""What a process that lacks the task functions can tell of a target: by what workers wrote about theirs."""

from typing import Any

import pytest

from foliot.commands.admission import DefinitionChecker
from foliot.db.rows.registry_rows import TaskRecord
from foliot.instance.store import SqlStore
from foliot.kinds.function_target import FunctionTarget, describe_task
from foliot.model.errors import InvalidError, Problem
from foliot.model.schedule import ScheduleSpec
from foliot.planning.change import Author


async def send_report(region: str, copies: int = 1) -> None:
    """A task of another process."""


@pytest.fixture
async def admission(store: SqlStore) -> DefinitionChecker:
    task = describe_task(send_report)
    record = TaskRecord(
        task.name,
        task.display_name,
        task.description,
        "app.send",
        "async_function",
        None,
        300.0,
        task.args_schema,
    )
    await store.registry.register_tasks([record])
    return DefinitionChecker(store.database)


async def problems(admission: DefinitionChecker, name: str, **args: Any) -> list[Problem]:
    target = {"kind": "function", "name": name, "args": args}
    spec = ScheduleSpec.parse({"name": "a", "trigger": {"kind": "interval", "hours": 1}, "target": target})
    return (await admission.checker(spec))(spec)


async def test_arguments_that_fit_are_taken(admission: DefinitionChecker) -> None:
    assert await problems(admission, "send_report", region="eu", copies=2) == []


@pytest.mark.parametrize(
    ("args", "pointer"),
    [
        ({}, "/target/args"),
        ({"region": 7}, "/target/args/region"),
        ({"region": "eu", "copies": "many"}, "/target/args/copies"),
        ({"region": "eu", "colour": "red"}, "/target/args"),
    ],
)
async def test_arguments_that_do_not_fit_are_named(
    admission: DefinitionChecker, args: dict[str, Any], pointer: str
) -> None:
    [problem] = await problems(admission, "send_report", **args)
    assert problem.pointer == pointer
    assert problem.hint == "send_report takes copies, region"


async def test_a_task_that_nobody_registered_is_refused_with_the_nearest(
    admission: DefinitionChecker,
) -> None:
    [problem] = await problems(admission, "send_reports")
    assert (problem.pointer, problem.code) == ("/target/name", "unknown_task")
    assert problem.hint == 'did you mean "send_report"?'


async def test_a_task_that_is_switched_off_is_refused(store: SqlStore, admission: DefinitionChecker) -> None:
    await store.registry_list.set_task_active("send_report", False, Author("ann"))
    [problem] = await problems(admission, "send_report", region="eu")
    assert problem.code == "inactive_task"


async def test_arguments_of_a_single_run_are_checked_over_those_of_the_schedule(
    admission: DefinitionChecker,
) -> None:
    target = FunctionTarget(name="send_report", args={"region": "eu"})
    await admission.check_arguments(target, {"copies": 3})
    with pytest.raises(InvalidError, match=r"args\.copies"):
        await admission.check_arguments(target, {"copies": "many"})
